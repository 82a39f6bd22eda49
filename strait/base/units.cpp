#include "strait/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "strait/base/error.h"

namespace strait {
namespace {

struct Scale {
  std::string_view prefix;
  double factor;
};

constexpr Scale kTimes[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Scale kLongTimes[] = {{"m", 60}, {"h", 3600}};
constexpr Scale kRates[] = {{"k", 1e3}, {"K", 1e3}, {"m", 1e6}, {"M", 1e6}, {"g", 1e9}, {"G", 1e9}};
constexpr Scale kRateUnits[] = {{"bps", 0.125}, {"bit/s", 0.125}, {"bit", 0.125}, {"b/s", 0.125}, {"B/s", 1}};

/// A number and what stands behind it, without the blanks between them.
struct Quantity {
  double number;
  std::string_view unit;
};

std::optional<Quantity> read_quantity(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  return Quantity{number, unit};
}

template <size_t N>
std::optional<double> factor_of(std::string_view name, const Scale (&scales)[N]) {
  for (const auto& [prefix, factor] : scales) {
    if (name == prefix) return factor;
  }
  return std::nullopt;
}

/// Bytes per second of `Mbit/s` and the like.
std::optional<double> rate_of(std::string_view unit) {
  if (const auto plain = factor_of(unit, kRateUnits)) return plain;
  const auto prefix = factor_of(unit.substr(0, 1), kRates);
  const auto rest = factor_of(unit.substr(std::min<size_t>(1, unit.size())), kRateUnits);
  return prefix && rest ? std::optional(*prefix * *rest) : std::nullopt;
}

/// The number in the largest of the units in which it is at least 1, or in the smallest.
template <size_t N>
std::string scaled_text(double value, const Scale (&scales)[N]) {
  const Scale* best = std::begin(scales);
  for (const Scale& scale : scales) {
    if (value >= scale.factor * 0.99995) best = &scale;  // 999.96 ms would be written as 1000 ms
  }
  return fmt::format("{:.4g} {}", value / best->factor, best->prefix);
}

}  // namespace

double parse_seconds(std::string_view text, std::string_view what) {
  const auto quantity = read_quantity(text);
  if (quantity && quantity->number == 0 && quantity->unit.empty()) return 0;
  auto factor = quantity ? factor_of(quantity->unit, kTimes) : std::nullopt;
  if (quantity && !factor) factor = factor_of(quantity->unit, kLongTimes);
  if (!factor) throw InputError("{}: expected a time such as 20ms, 1.5s or 10m, found \"{}\"", what, text);
  const double seconds = quantity->number * *factor;
  if (seconds > kLongestSeconds) throw InputError("{}: expected at most 100 years, found \"{}\"", what, text);
  return seconds;
}

double parse_bandwidth(std::string_view text, std::string_view what) {
  if (text == "unlimited") return std::numeric_limits<double>::infinity();
  const auto quantity = read_quantity(text);
  const auto factor = quantity ? rate_of(quantity->unit) : std::nullopt;
  if (!factor || quantity->number * *factor < kLeastBandwidth) {
    throw InputError(
        "{}: expected a rate of at least 1kbps such as 100Mbps, 1Gbit/s or 12.5MB/s, or unlimited, found "
        "\"{}\"",
        what, text);
  }
  return quantity->number * *factor;
}

std::string duration_text(double seconds) { return seconds == 0 ? "0 s" : scaled_text(seconds, kTimes); }

std::string count_text(int64_t count, std::string_view one) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  const std::string_view plural = count == 1 ? "" : one.ends_with('s') || one.ends_with("tch") ? "es" : "s";
  return fmt::format("{} {}{}", text, one, plural);
}

std::string size_text(uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  return bytes >= 1000000000 ? fmt::format("{:.1f} GB", amount / 1e9) : fmt::format("{:.1f} MB", amount / 1e6);
}

std::string bandwidth_text(double bytes_per_second) {
  constexpr Scale kBits[] = {{"bps", 0.125}, {"kbps", 125}, {"Mbps", 125e3}, {"Gbps", 125e6}};
  return std::isinf(bytes_per_second) ? "unlimited" : scaled_text(bytes_per_second, kBits);
}

}  // namespace strait
