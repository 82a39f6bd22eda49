#include "strait/base/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "strait/base/literal.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

/// A number that holds. One that is finite but no float32 can be is refused, because that is what tensors
/// compute with.
Rule<double> real(const std::string& expected, bool (*holds)(double)) {
  return {expected, [expected, holds](const double& value) -> std::string {
            const bool fits = std::abs(value) <= std::numeric_limits<float>::max();
            if (fits && holds(value)) return "";
            return fmt::format("expected {}{}, found {}", expected,
                               std::isfinite(value) && !fits ? " within float32" : "", toml_number(value));
          }};
}

/// So many numbers that hold together.
Rule<std::vector<double>> reals(const std::string& expected, size_t count,
                                bool (*hold)(const std::vector<double>&)) {
  return {expected, [expected, count, hold](const std::vector<double>& values) -> std::string {
            const auto finite = [](double value) { return std::isfinite(value); };
            if (values.size() == count && std::ranges::all_of(values, finite) && hold(values)) return "";
            std::vector<std::string> found;
            std::ranges::transform(values, std::back_inserter(found), toml_number);
            return fmt::format("expected {}, found [{}]", expected, list_of(found));
          }};
}

}  // namespace

Rule<int64_t> at_least(int64_t low) {
  const std::string expected = fmt::format("an integer >= {}", low);
  return {expected, [low, expected](const int64_t& value) -> std::string {
            return value >= low ? "" : fmt::format("expected {}, found {}", expected, value);
          }};
}

Rule<int64_t> from_to(int64_t low, int64_t high) {
  const std::string expected = fmt::format("an integer from {} to {}", low, high);
  return {expected, [low, high, expected](const int64_t& value) -> std::string {
            if (value >= low && value <= high) return "";
            return fmt::format("expected {}, found {}", expected, value);
          }};
}

Rule<bool> yes_or_no() {
  return {"true or false", [](const bool&) { return std::string(); }};
}

Rule<double> positive() {
  return real("a number > 0", [](double value) { return value > 0; });
}

Rule<double> not_negative() {
  return real("a number >= 0", [](double value) { return value >= 0; });
}

Rule<double> below_one() {
  return real("a number >= 0 and < 1", [](double value) { return value >= 0 && value < 1; });
}

Rule<std::vector<double>> two_below_one() {
  return reals("two numbers >= 0 and < 1", 2, [](const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double value) { return value >= 0 && value < 1; });
  });
}

Rule<std::vector<double>> range_of_share() {
  return reals("two rising numbers from 0 to 1", 2, [](const std::vector<double>& values) {
    return values[0] >= 0 && values[0] < values[1] && values[1] <= 1;
  });
}

Rule<std::vector<double>> three_numbers() {
  return reals("three numbers", 3, [](const std::vector<double>&) { return true; });
}

Rule<std::vector<double>> three_positive() {
  return reals("three numbers > 0", 3, [](const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double value) { return value > 0; });
  });
}

Rule<std::string> path_text() {
  return {"a path", [](const std::string& path) {
            // The system takes a path to end at a NUL.
            const bool good = path.find('\0') == std::string::npos && well_formed_prefix(path) == path.size();
            return good ? "" : "expected a path in UTF-8 without NUL";
          }};
}

Rule<std::string> one_of(const std::vector<std::string>& choices,
                         const std::map<std::string, std::string>& others) {
  return {"one of: " + list_of(choices), [choices, others](const std::string& name) -> std::string {
            if (std::ranges::find(choices, name) != choices.end()) return "";
            const auto meant = others.find(name);
            return fmt::format("expected one of: {}; found {}{}", list_of(choices), toml_string(name),
                               suggestion(meant == others.end() ? name : meant->second, choices));
          }};
}

}  // namespace strait
