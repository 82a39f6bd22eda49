#include "strait/experiment/sweep_grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "strait/base/error.h"
#include "strait/base/literal.h"

namespace strait {
namespace {

constexpr size_t kMostPoints = 10'000;

/// Keys that name a run, or say which runs there are.
constexpr std::array<std::string_view, 3> kFixedKeys = {"name", "seed", "paper"};

/// A key of the grid and the values that it takes.
struct Axis {
  std::vector<std::string> path;  ///< the key's parts
  TomlNode::Array values;
  Origin origin;
};

void collect_axes(TomlTable table, const std::vector<std::string>& prefix, std::vector<Axis>& axes) {
  for (auto& [key, node] : table) {
    auto path = prefix;
    path.push_back(key);
    if (auto* inner = node.get<TomlTable>(); inner != nullptr && !inner->empty()) {
      collect_axes(std::move(*inner), path, axes);
      continue;
    }
    auto* values = node.get<TomlNode::Array>();
    if (values == nullptr || values->empty()) {
      throw InputError("{}: grid.{}: expected a list of values, found {}", node.origin.text(),
                       fmt::join(path, "."), values == nullptr ? describe(node) : "an empty array");
    }
    axes.push_back({std::move(path), std::move(*values), std::move(node.origin)});
  }
}

std::string axis_name(const Axis& axis, const std::vector<Axis>& axes) {
  const auto ends_alike = [&](const Axis& other) { return other.path.back() == axis.path.back(); };
  const bool is_alone = std::ranges::count_if(axes, ends_alike) == 1;
  if (is_alone || axis.path.size() == 1) return axis.path.back();
  return axis.path[axis.path.size() - 2] + "." + axis.path.back();
}

/// A value as a part of a folder's name.
std::string value_name(const TomlNode& value, const Axis& axis) {
  if (const auto* text = value.get<std::string>()) {
    std::string name = *text;
    const auto is_kept = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
             c == '_' || c == '+';
    };
    std::ranges::replace_if(
        name, [&](char c) { return !is_kept(c); }, '-');
    return name.empty() ? "empty" : name;
  }
  if (const auto* list = value.get<TomlNode::Array>()) {
    std::vector<std::string> names;
    for (const auto& item : *list) names.push_back(value_name(item, axis));
    return names.empty() ? "empty" : fmt::format("{}", fmt::join(names, "-"));
  }
  if (value.get<double>() != nullptr || value.get<int64_t>() != nullptr || value.get<bool>() != nullptr) {
    return describe(value);
  }
  throw InputError("{}: grid.{}: expected numbers, texts, booleans or lists of them, found {}",
                   value.origin.text(), fmt::join(axis.path, "."), describe(value));
}

TomlTable layer_of(const Axis& axis, const TomlNode& value) {
  TomlNode node = value;
  for (size_t i = axis.path.size(); i-- > 1;) {
    TomlTable table;
    table.emplace(axis.path[i], std::move(node));
    node = TomlNode{std::move(table), axis.origin};
  }
  TomlTable layer;
  layer.emplace(axis.path.front(), std::move(node));
  return layer;
}

void check_apart_below(const TomlTable& variant, const TomlTable& point, const std::string& prefix) {
  for (const auto& [key, node] : point) {
    const auto own = variant.find(key);
    if (own == variant.end()) continue;
    const auto* ours = own->second.get<TomlTable>();
    const auto* theirs = node.get<TomlTable>();
    if (ours == nullptr || theirs == nullptr) {
      throw InputError("{}: {}{}: a variant cannot set what the sweep's grid varies", own->second.origin.text(),
                       prefix, key);
    }
    check_apart_below(*ours, *theirs, prefix + key + ".");
  }
}

}  // namespace

std::vector<GridPoint> take_grid(TomlTable& root) {
  std::vector<GridPoint> points(1);
  auto entry = root.extract("grid");
  if (entry.empty()) return points;
  TomlNode& node = entry.mapped();
  auto* table = node.get<TomlTable>();
  if (table == nullptr || table->empty()) {
    throw InputError("{}: grid: expected a table of keys, each with a list of values, found {}",
                     node.origin.text(), table == nullptr ? describe(node) : "an empty table");
  }
  for (const auto& [key, value] : *table) {
    if (std::ranges::find(kFixedKeys, key) == kFixedKeys.end()) continue;
    throw InputError("{}: grid.{}: a grid cannot vary it{}", value.origin.text(), key,
                     key == "seed" ? "; seeds = [...] does" : "");
  }
  std::vector<Axis> axes;
  collect_axes(std::move(*table), {}, axes);
  for (const auto& axis : axes) {
    if (points.size() * axis.values.size() > kMostPoints) {
      throw InputError("{}: grid: expected at most {} combinations, found more", node.origin.text(),
                       kMostPoints);
    }
    std::vector<GridPoint> crossed;
    for (const auto& point : points) {
      for (const auto& value : axis.values) {
        GridPoint next = point;
        next.name += fmt::format("{}{}-{}", next.name.empty() ? "" : "-", axis_name(axis, axes),
                                 value_name(value, axis));
        merge(next.layer, layer_of(axis, value));
        crossed.push_back(std::move(next));
      }
    }
    points = std::move(crossed);
  }
  return points;
}

void check_apart(const TomlTable& variant, const TomlTable& point) { check_apart_below(variant, point, ""); }

}  // namespace strait
