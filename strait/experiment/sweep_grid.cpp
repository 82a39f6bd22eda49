#include "strait/experiment/sweep_grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/literal.h"
#include "strait/base/units.h"
#include "strait/config/rules.h"

namespace strait {
namespace {

constexpr int kMostRuns = 10'000;

/// Keys that name a run, or say which runs there are.
constexpr std::array<std::string_view, 3> kFixedKeys = {"name", "seed", "paper"};

/// How many a list has, at least one: what is no list, or an empty one, is refused elsewhere.
size_t count_of(const TomlNode& node) {
  const auto* list = node.get<TomlNode::Array>();
  return list == nullptr ? 1 : std::max<size_t>(list->size(), 1);
}

size_t count_at(const TomlTable& root, const std::string& key) {
  const auto found = root.find(key);
  return found == root.end() ? 1 : count_of(found->second);
}

/// The product of the numbers of values; real, because it may be beyond every integer.
double points_in(const TomlTable& grid) {
  double points = 1;
  for (const auto& [key, node] : grid) {
    const auto* inner = node.get<TomlTable>();
    points *= inner != nullptr ? points_in(*inner) : static_cast<double>(count_of(node));
  }
  return points;
}

[[noreturn]] void refuse_long_names(const Origin& origin, const std::string& key) {
  throw InputError("{}: {}: expected values that make names of at most {} characters, found a longer one",
                   origin.text(), key, kFolderNameMost);
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

void SweepGrid::collect(TomlTable table, const std::vector<std::string>& prefix, std::vector<Axis>& axes) {
  for (auto& [key, node] : table) {
    auto path = prefix;
    path.push_back(key);
    if (auto* inner = node.get<TomlTable>(); inner != nullptr && !inner->empty()) {
      collect(std::move(*inner), path, axes);
      continue;
    }
    auto* values = node.get<TomlNode::Array>();
    if (values == nullptr || values->empty()) {
      throw InputError("{}: grid.{}: expected a list of values, found {}", node.origin.text(),
                       fmt::join(path, "."), values == nullptr ? describe(node) : "an empty array");
    }
    if (axes.size() == kFolderNameMost) refuse_long_names(node.origin, "grid");  // each is a part of it
    axes.push_back({std::move(path), std::move(*values), std::move(node.origin), {}});
  }
}

std::string SweepGrid::key_name(const Axis& axis, const std::vector<Axis>& axes) {
  const auto ends_alike = [&](const Axis& other) { return other.path.back() == axis.path.back(); };
  const bool is_alone = std::ranges::count_if(axes, ends_alike) == 1;
  if (is_alone || axis.path.size() == 1) return axis.path.back();
  return axis.path[axis.path.size() - 2] + "." + axis.path.back();
}

/// A value as a part of a folder's name.
std::string SweepGrid::value_name(const TomlNode& value, const Axis& axis) {
  if (const auto* text = value.get<std::string>()) {
    std::string name = *text;
    std::ranges::replace_if(name, std::not_fn(is_folder_character), '-');
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

TomlTable SweepGrid::layer_of(const Axis& axis, const TomlNode& value) {
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

SweepGrid::SweepGrid(TomlTable& root) {
  auto entry = root.extract("grid");
  if (entry.empty()) return;
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
  collect(std::move(*table), {}, axes_);
  size_t longest_point = axes_.size() - 1;  // the hyphens between
  for (auto& axis : axes_) {
    const std::string key = key_name(axis, axes_);
    size_t longest = 0;
    for (const auto& value : axis.values) {
      axis.names.push_back(fmt::format("{}-{}", key, value_name(value, axis)));
      longest = std::max(longest, axis.names.back().size());
      if (longest > kFolderNameMost) {
        refuse_long_names(value.origin, fmt::format("grid.{}", fmt::join(axis.path, ".")));
      }
    }
    longest_point += longest;
  }
  if (longest_point > kFolderNameMost) refuse_long_names(node.origin, "grid");
}

size_t SweepGrid::size() const {
  size_t points = 1;
  for (const auto& axis : axes_) points *= axis.values.size();
  return points;
}

GridPoint SweepGrid::point(size_t index) const {
  GridPoint point;
  size_t points = size();
  for (const auto& axis : axes_) {
    points /= axis.values.size();
    const size_t place = std::exchange(index, index % points) / points;
    point.name += (point.name.empty() ? "" : "-") + axis.names[place];
    merge(point.layer, layer_of(axis, axis.values[place]));
  }
  return point;
}

void check_run_count(const TomlTable& root, const std::string& file) {
  const size_t variants = count_at(root, "variants");
  const size_t seeds = count_at(root, "seeds");
  const auto grid = root.find("grid");
  const auto* axes = grid == root.end() ? nullptr : grid->second.get<TomlTable>();
  const double points = axes == nullptr ? 1 : points_in(*axes);
  if (points * static_cast<double>(variants) * static_cast<double>(seeds) <= kMostRuns) return;
  throw InputError(
      "{}: expected at most {}, found {} x {} x {} of the grid", file, count_text(kMostRuns, "run"),
      count_text(static_cast<int64_t>(variants), "variant"), count_text(static_cast<int64_t>(seeds), "seed"),
      points < 1e15 ? count_text(static_cast<int64_t>(points), "point") : fmt::format("{:g} points", points));
}

void check_apart(const TomlTable& variant, const TomlTable& point) { check_apart_below(variant, point, ""); }

}  // namespace strait
