#include "strait/codecs/fraction.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace strait {

std::optional<Fraction> Fraction::parse(std::string_view text) {
  constexpr size_t kMaxPlaces = 9;
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  const std::string_view places = point < text.size() ? text.substr(point + 1) : "";
  const bool complete = !whole.empty() && (point == text.size() || !places.empty());
  if (!complete || whole.size() > 1 || places.size() > kMaxPlaces) return std::nullopt;
  uint64_t numerator = 0;
  uint64_t denominator = 1;
  const auto append = [&](char digit) {
    if (digit < '0' || digit > '9') return false;
    numerator = numerator * 10 + static_cast<uint64_t>(digit - '0');
    return true;
  };
  if (!append(whole.front())) return std::nullopt;
  for (const char digit : places) {
    if (!append(digit)) return std::nullopt;
    denominator *= 10;
  }
  if (numerator == 0 || numerator > denominator) return std::nullopt;
  return Fraction(numerator, denominator);
}

std::optional<double> parse_decimal(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return std::nullopt;
  const char* end = text.data() + text.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

}  // namespace strait
