#include "strait/config/rules.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/link_rate.h"
#include "strait/base/literal.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/links/link.h"

namespace strait {
namespace {

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

}  // namespace

bool is_folder_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._+-").find(c) != std::string_view::npos;
}

Rule<std::string> device_name() {
  const auto names = one_of({"auto", "cpu", "cuda", "cuda:N"}, {{"gpu", "cuda"}});
  return {names.expected, [names](const std::string& text) -> std::string {
            constexpr std::string_view kNumbered = "cuda:";
            const std::string number = text.starts_with(kNumbered) ? text.substr(kNumbered.size()) : "";
            const bool is_number = !number.empty() && number.size() <= 3 &&
                                   std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
            return is_number ? "" : text == "cuda:N" ? "expected a number for N in cuda:N" : names(text);
          }};
}

Rule<std::vector<int>> each_at_least(int64_t low) {
  return {fmt::format("integers >= {}", low),
          [rule = at_least(low)](const std::vector<int>& values) -> std::string {
            const auto bad = std::ranges::find_if(values, [&](int value) { return !rule(value).empty(); });
            return bad == values.end() ? "" : rule(*bad) + " in it";
          }};
}

Rule<std::string> folder_name() {
  static constexpr const char* kExpected =
      "the name of a folder, 1 to 100 letters, digits and any of ._+- that begin with no . or -";
  return {"the name of a folder", [](const std::string& name) -> std::string {
            const bool fits = !name.empty() && name.size() <= kFolderNameMost && name.front() != '.' &&
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

Rule<std::string> duration_or_none() {
  static constexpr const char* kExpected = "a time such as 10m or 90s, or 0s";
  return {kExpected, [](const std::string& text) -> std::string {
            if (complaint_of([&] { parse_seconds(text, ""); }).empty()) return "";
            return fmt::format("expected {}, found {}", kExpected, toml_string(text));
          }};
}

Rule<std::string> bandwidth() {
  static constexpr const char* kExpected = "a rate of at least 1kbps such as 100Mbps, or unlimited";
  return {kExpected, [](const std::string& text) -> std::string {
            if (complaint_of([&] { parse_bandwidth(text, ""); }).empty()) return "";
            return fmt::format("expected {}, found {}", kExpected, toml_string(text));
          }};
}

Rule<std::string> link_or_none() {
  static constexpr const char* kExpected =
      "a rate of at least 1kbps and perhaps a latency, such as 200Mbps,50ms, or nothing";
  return {kExpected, [](const std::string& text) -> std::string {
            if (text.empty() || complaint_of([&] { parse_link_rate(text, ""); }).empty()) return "";
            return fmt::format("expected {}, found {}", kExpected, toml_string(text));
          }};
}

Rule<std::vector<double>> each_positive() {
  static constexpr const char* kExpected = "numbers above 0";
  return {
      kExpected, [](const std::vector<double>& values) -> std::string {
        const auto bad = std::ranges::find_if(values, [](double value) { return !positive()(value).empty(); });
        return bad == values.end() ? "" : fmt::format("expected {}, found {}", kExpected, toml_number(*bad));
      }};
}

Rule<std::string> codec_spec() {
  return {"a codec of `strait codec list`",
          [](const std::string& spec) { return complaint_of([&] { make_codec(spec); }); }};
}

Rule<std::string> codec_or_auto() {
  return {"a codec of `strait codec list`, or auto", [rule = codec_spec()](const std::string& spec) {
            return spec == kAutoCodec ? std::string() : rule(spec);
          }};
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

Rule<std::vector<NetworkOptions>> networks() {
  return {"tables of a name and a bandwidth, and of latency, compute and stage_seconds",
          [](const std::vector<NetworkOptions>&) { return std::string(); }};
}

Rule<std::vector<std::string>> codecs() {
  return {"codecs of `strait codec list` that keep nothing from message to message",
          [](const std::vector<std::string>&) { return std::string(); }};
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
