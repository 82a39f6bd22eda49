#include "strait/report/config_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>
#include <vector>

#include "strait/base/error.h"
#include "strait/formats/toml.h"
#include "strait/run/idle_keys.h"

namespace strait::report {
namespace {

std::string value_text(const TomlNode& node);

std::string items_text(const TomlNode::Array& array) {
  std::vector<std::string> items;
  for (const auto& item : array) items.push_back(value_text(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::string entries_text(const TomlTable& table) {
  std::vector<std::string> entries;
  for (const auto& [key, value] : table) entries.push_back(fmt::format("{} = {}", key, value_text(value)));
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

std::string value_text(const TomlNode& node) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Type = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, TomlTable>) {
          return entries_text(value);
        } else if constexpr (std::is_same_v<Type, TomlNode::Array>) {
          return items_text(value);
        } else if constexpr (std::is_same_v<Type, TomlNode::Time>) {
          return "a time";
        } else {
          return fmt::format("{}", value);
        }
      },
      node.value);
}

void flatten(const TomlTable& table, const std::string& prefix, ConfigValues& values) {
  for (const auto& [key, node] : table) {
    if (const auto* inner = node.get<TomlTable>()) {
      flatten(*inner, fmt::format("{}{}.", prefix, key), values);
    } else {
      values.emplace(prefix + key, value_text(node));
    }
  }
}

/// The paths that kinds of data have of their own: a report knows files, not kinds of data, so that a path of a
/// kind that is not strait's counts as a difference.
constexpr std::array<std::string_view, 3> kDataPaths = {"data.tokenizer", "data.train_file", "data.test_file"};

constexpr std::array<std::string_view, 2> kLinks = {"networks", "pipeline.link"};

/// Whether codecs are chosen in training by what a step waits for, for which links decide.
bool chooses_by_time(const ConfigValues& values) {
  const auto budget = values.find("compression.auto.budget");
  if (budget != values.end() && budget->second != "0" && budget->second != "0.0") return false;
  return std::ranges::any_of(values, [](const auto& entry) {
    const auto& [key, value] = entry;
    if (key == "compression.boundaries") return value.find("codec = auto") != std::string::npos;
    return value == "auto" && key.starts_with("compression.") && key.ends_with(".codec");
  });
}

}  // namespace

ConfigValues config_values(const std::string& config) {
  ConfigValues values;
  try {
    flatten(parse_toml(config, "config.toml"), "", values);
  } catch (const InputError&) {
    return {};
  }
  values.erase("name");
  values.erase("seed");
  return values;
}

ConfigValues deciding_values(const std::string& config) {
  ConfigValues values = config_values(config);
  const bool links_count = chooses_by_time(values);
  std::erase_if(values, [&](const auto& entry) {
    const std::string& key = entry.first;
    if (std::ranges::find(kLinks, key) != kLinks.end()) return !links_count;
    return is_idle_key(key) || std::ranges::find(kDataPaths, key) != kDataPaths.end();
  });
  return values;
}

}  // namespace strait::report
