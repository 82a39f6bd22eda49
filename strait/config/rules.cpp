#include "strait/config/rules.h"

#include <algorithm>
#include <cmath>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/config/toml.h"
#include "strait/links/link.h"

namespace strait {
namespace {

Rule<double> real(const std::string& expected, bool (*holds)(double)) {
  return {expected, [expected, holds](const double& value) -> std::string {
            if (std::isfinite(value) && holds(value)) return "";
            return fmt::format("expected {}, found {}", expected, toml_number(value));
          }};
}

Rule<std::vector<double>> two_reals(const std::string& expected, bool (*hold)(double, double)) {
  return {expected, [expected, hold](const std::vector<double>& values) -> std::string {
            if (values.size() == 2 && hold(values[0], values[1])) return "";
            std::vector<std::string> found;
            std::ranges::transform(values, std::back_inserter(found), toml_number);
            return fmt::format("expected {}, found [{}]", expected, list_of(found));
          }};
}

/// The message of the InputError that a check throws.
template <class Check>
std::string complaint_of(const Check& check) {
  try {
    check();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool is_folder_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._+-").find(c) != std::string_view::npos;
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

Rule<std::vector<int>> each_at_least(int64_t low) {
  return {fmt::format("integers >= {}", low),
          [rule = at_least(low)](const std::vector<int>& values) -> std::string {
            const auto bad = std::ranges::find_if(values, [&](int value) { return !rule(value).empty(); });
            return bad == values.end() ? "" : rule(*bad) + " in it";
          }};
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
  return two_reals("two numbers >= 0 and < 1",
                   [](double a, double b) { return a >= 0 && a < 1 && b >= 0 && b < 1; });
}

Rule<std::vector<double>> range_of_share() {
  return two_reals("two rising numbers from 0 to 1",
                   [](double a, double b) { return a >= 0 && a < b && b <= 1; });
}

Rule<std::string> path_text() {
  return {"a path",
          [](const std::string& path) { return is_toml_text(path) ? "" : "expected a path in UTF-8"; }};
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

Rule<std::string> folder_name() {
  static constexpr const char* kExpected =
      "the name of a folder, 1 to 100 letters, digits and any of ._+- that begin with no . or -";
  return {"the name of a folder", [](const std::string& name) -> std::string {
            const bool fits = !name.empty() && name.size() <= 100 && name.front() != '.' &&
                              name.front() != '-' && std::ranges::all_of(name, is_folder_character);
            if (fits) return "";
            return fmt::format("expected {}, found {}", kExpected, toml_string(name));
          }};
}

Rule<std::string> duration() {
  static constexpr const char* kExpected = "a time such as 60s or 500ms";
  return {kExpected, [](const std::string& text) -> std::string {
            constexpr double kShortest = 1e-3;
            if (complaint_of([&] { parse_seconds(text, ""); }).empty() && parse_seconds(text, "") >= kShortest)
              return "";
            return fmt::format("expected {}, found {}", kExpected, toml_string(text));
          }};
}

Rule<std::string> codec_spec() {
  return {"a codec of `strait codec list`",
          [](const std::string& spec) { return complaint_of([&] { make_codec(spec); }); }};
}

Rule<std::string> feedback() {
  return {"one of: " + list_of(link_names()),
          [](const std::string& spec) { return complaint_of([&] { check_feedback(spec); }); }};
}

Rule<std::string> any_text() {
  return {"a string", [](const std::string&) { return std::string(); }};
}

Rule<std::vector<OwnBoundaryOptions>> own_boundaries() {
  return {"tables of a name of model.cuts, and of codec, feedback or both of activations, gradients or both",
          [](const std::vector<OwnBoundaryOptions>&) { return std::string(); }};
}

Rule<std::vector<std::string>> distinct_names() {
  return {"names of layers, each once", [](const std::vector<std::string>& names) -> std::string {
            for (size_t i = 0; i < names.size(); ++i) {
              if (names[i].empty()) return "expected names of layers, found an empty one";
              if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) !=
                  names.begin() + static_cast<ptrdiff_t>(i)) {
                return fmt::format("expected each layer once, found {} twice", toml_string(names[i]));
              }
            }
            return "";
          }};
}

}  // namespace strait
