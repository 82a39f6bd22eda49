#include "strait/experiment/sweep.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/config/layers.h"
#include "strait/config/reader.h"
#include "strait/config/rules.h"
#include "strait/experiment/sweep_grid.h"
#include "strait/train/task.h"

namespace strait {
namespace {

constexpr std::string_view kVariants = "an array of tables, one [[variants]] per run";

/// Takes a key that must be an array out of the table; an absent one is empty.
TomlNode::Array take_array(TomlTable& table, const std::string& key, std::string_view expected,
                           Origin& origin) {
  const auto entry = table.extract(key);
  if (entry.empty()) return {};
  auto* array = entry.mapped().get<TomlNode::Array>();
  origin = entry.mapped().origin;
  if (array == nullptr || array->empty()) {
    throw InputError("{}: {}: expected {}, found {}", origin.text(), key, expected,
                     array == nullptr ? describe(entry.mapped()) : "an empty array");
  }
  return std::move(*array);
}

/// The variants as tables, each with a name that no other has; none where the file has none.
std::vector<TomlTable> take_variants(TomlTable& root) {
  Origin origin;
  std::vector<TomlTable> variants;
  std::vector<std::string> names;
  for (auto& item : take_array(root, "variants", kVariants, origin)) {
    auto* table = item.get<TomlTable>();
    if (table == nullptr) {
      throw InputError("{}: variants: expected {}, found {} in it", item.origin.text(), kVariants,
                       describe(item));
    }
    const auto entry = table->find("name");
    if (entry == table->end()) throw InputError("{}: variants: expected a name in each", item.origin.text());
    const auto* name = entry->second.get<std::string>();
    if (name != nullptr && std::ranges::find(names, *name) != names.end()) {
      throw InputError("{}: variants: expected each name once, found {} twice", entry->second.origin.text(),
                       toml_string(*name));
    }
    if (name != nullptr) names.push_back(*name);  // read_config() complains about another type
    variants.push_back(std::move(*table));
  }
  return variants;
}

/// The variant's name; empty where it has none, or one of another type.
std::string name_of(const TomlTable& variant) {
  const auto entry = variant.find("name");
  const auto* name = entry == variant.end() ? nullptr : entry->second.get<std::string>();
  return name == nullptr ? "" : *name;
}

/// Gives `use` each variant at each point of the grid, its name extended by the point's, with the name that it
/// has in the file (SweepRun::row): one after the other, so that a wrong one ends it before many are made.
/// Without variants the points are the variants.
void cross(std::vector<TomlTable> variants, const SweepGrid& grid,
           const std::function<void(TomlTable variant, const std::string& row)>& use) {
  if (grid.is_empty()) {
    for (auto& variant : variants) {
      const std::string row = name_of(variant);
      use(std::move(variant), row);
    }
    return;
  }
  const bool is_grid_alone = variants.empty();
  if (is_grid_alone) variants.emplace_back();
  std::set<std::string> names;
  for (const auto& variant : variants) {
    for (size_t i = 0; i < grid.size(); ++i) {
      const auto [point, layer] = grid.point(i);
      check_apart(variant, layer);
      TomlTable table = variant;
      merge(table, layer);
      const Origin& origin = layer.begin()->second.origin;
      auto& name = table.try_emplace("name", TomlNode{std::string(), origin}).first->second;
      if (auto* text = name.get<std::string>()) {  // read_config() complains about another type
        *text += (is_grid_alone ? "" : "-") + point;
        if (!names.insert(*text).second) {
          throw InputError("{}: grid: expected values that make names that differ, found {} twice",
                           origin.text(), toml_string(*text));
        }
      }
      use(std::move(table), name_of(variant));
    }
  }
}

/// The seeds as nodes, so that an error about one names its line.
TomlNode::Array take_seeds(TomlTable& root, const std::vector<TomlTable>& variants) {
  Origin origin;
  auto seeds = take_array(root, "seeds", "an array of integers", origin);
  std::vector<int64_t> seen;
  for (const auto& seed : seeds) {
    const auto* value = seed.get<int64_t>();
    if (value == nullptr || *value < 0) {
      throw InputError("{}: seeds: expected integers >= 0, found {}", seed.origin.text(), describe(seed));
    }
    if (std::ranges::find(seen, *value) != seen.end()) {
      throw InputError("{}: seeds: expected each once, found {} twice", seed.origin.text(), *value);
    }
    seen.push_back(*value);
  }
  for (const auto& variant : variants) {
    const auto own = variant.find("seed");
    if (!seeds.empty() && own != variant.end()) {
      throw InputError("{}: seed: a variant cannot set it where the sweep has seeds",
                       own->second.origin.text());
    }
  }
  return seeds;
}

/// Takes the sweep's title out of the file; empty where it has none.
std::string take_title(TomlTable& root) {
  const auto entry = root.extract("title");
  if (entry.empty()) return "";
  const auto* title = entry.mapped().get<std::string>();
  if (title == nullptr || title->empty()) {
    throw InputError("{}: title: expected a text, found {}", entry.mapped().origin.text(),
                     describe(entry.mapped()));
  }
  return *title;
}

/// A figure of a published table. `paper` is the table that holds it.
double figure(const TomlNode& paper, const std::string& key, const Metric& metric) {
  const auto& table = *paper.get<TomlTable>();
  const auto found = table.find(key);
  const TomlNode* node = found == table.end() ? &paper : &found->second;
  const auto* real = node->get<double>();
  const auto* integer = node->get<int64_t>();
  const double value = real != nullptr ? *real : integer != nullptr ? static_cast<double>(*integer) : -1;
  if (value >= metric.least && value <= metric.most) return value;
  throw InputError("{}: paper.{}: expected a {}, found {}", node->origin.text(), key, metric.expected,
                   node == &paper ? "none" : describe(*node));
}

/// Takes a variant's published figures out of it.
std::optional<TomlNode> take_paper(TomlTable& variant) {
  auto entry = variant.extract("paper");
  return entry.empty() ? std::nullopt : std::optional(std::move(entry.mapped()));
}

PaperFigures read_paper(const TomlNode& paper, const Metric& metric) {
  const auto* table = paper.get<TomlTable>();
  if (table == nullptr) {
    throw InputError("{}: paper: expected {{ off = ..., on = ... }}, found {}", paper.origin.text(),
                     describe(paper));
  }
  for (const auto& [key, node] : *table) {
    if (key != "off" && key != "on") {
      throw InputError("{}: paper: expected off and on alone, found {}", node.origin.text(), toml_string(key));
    }
  }
  PaperFigures figures;
  if (table->contains("off")) figures.off = figure(paper, "off", metric);
  figures.on = figure(paper, "on", metric);
  return figures;
}

/// The runs of a variant of that row, whose tables stand over the sweep's in `merged`.
std::vector<SweepRun> runs_of_variant(TomlTable merged, const std::string& row, const TomlNode::Array& seeds) {
  const auto published = take_paper(merged);
  const Config config = read_config(merged);
  std::optional<PaperFigures> paper;
  if (published) paper = read_paper(*published, task_of(config.data).judged_by);
  std::vector<SweepRun> runs;
  if (seeds.empty()) runs.push_back({config.name, config, paper, row});
  for (const auto& seed : seeds) {
    merged.insert_or_assign("seed", seed);
    runs.push_back({config.name, read_config(merged), paper, row});
    if (seeds.size() == 1) continue;
    std::string& name = runs.back().config.name;
    name += fmt::format("-seed{}", runs.back().config.seed);
    const auto complaint = folder_name()(name);  // of a variant's name that is long already
    if (!complaint.empty()) throw InputError("{}: name: {}", merged.at("name").origin.text(), complaint);
  }
  return runs;
}

/// The keys of two configurations of the same kinds that have different values.
std::vector<std::string> keys_apart(const Config& one, const Config& other) {
  const auto ours = key_values(one);
  const auto theirs = key_values(other);
  std::vector<std::string> keys;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] != theirs.at(i)) keys.push_back(ours[i].first);
  }
  return keys;
}

/// A sweep that computes the same twice is a mistake.
void check_distinct(const std::vector<SweepRun>& runs, const std::filesystem::path& path) {
  std::map<std::string, const Config*> known_configs;
  for (const auto& run : runs) {
    const auto [known, fresh] = known_configs.emplace(config_hash(run.config), &run.config);
    if (fresh) continue;
    throw InputError(
        "{}: variants: expected runs that differ, found {} and {}, which are equal but for keys that change "
        "nothing that is computed: {}",
        path.string(), toml_string(known->second->name), toml_string(run.config.name),
        list_of(keys_apart(*known->second, run.config)));
  }
}

/// The names by which runs_of() knows variants, each once, that of a row before those of its points.
std::vector<std::string> names_of_variants(const Sweep& sweep) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const auto& run : sweep.runs) {
    for (const auto& name : {run.row, run.variant}) {
      if (!name.empty() && known.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

Sweep load_sweep(const std::filesystem::path& path) {
  TomlTable root = load_layers(path);
  check_run_count(root, path.string());
  const SweepGrid grid(root);
  auto variants = take_variants(root);
  if (variants.empty() && grid.is_empty()) {
    throw InputError("{}: variants: expected {}, found none", path.string(), kVariants);
  }
  const auto seeds = take_seeds(root, variants);
  const std::string title = take_title(root);
  Sweep sweep{read_config(root).name, title, {}};
  if (sweep.title.empty()) sweep.title = sweep.name;
  cross(std::move(variants), grid, [&](TomlTable variant, const std::string& row) {
    TomlTable merged = root;
    merge(merged, std::move(variant));
    std::ranges::move(runs_of_variant(std::move(merged), row, seeds), std::back_inserter(sweep.runs));
  });
  check_distinct(sweep.runs, path);
  return sweep;
}

std::vector<size_t> runs_of(const Sweep& sweep, std::span<const std::string> variants,
                            std::span<const uint64_t> seeds) {
  const std::vector<std::string> known = names_of_variants(sweep);
  for (const auto& name : variants) {
    if (std::ranges::find(known, name) != known.end()) continue;
    throw InputError("sweep {} has no variant {}{}; expected one of: {}", sweep.name, toml_string(name),
                     suggestion(name, known), list_of(known));
  }
  for (const uint64_t seed : seeds) {
    const auto has_it = [&](const SweepRun& run) { return run.config.seed == seed; };
    if (std::ranges::none_of(sweep.runs, has_it)) {
      throw InputError("sweep {} has no run with seed {}", sweep.name, seed);
    }
  }
  const auto is_chosen = [](const auto& wanted, const auto& value) {
    return wanted.empty() || std::ranges::find(wanted, value) != wanted.end();
  };
  std::vector<size_t> places;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const SweepRun& run = sweep.runs[i];
    const bool is_named = is_chosen(variants, run.variant) || is_chosen(variants, run.row);
    if (is_named && is_chosen(seeds, run.config.seed)) places.push_back(i);
  }
  if (places.empty()) {  // where variants have seeds of their own
    throw InputError("sweep {} has no run of a variant among {} with a seed among {}", sweep.name,
                     list_of(variants), fmt::join(seeds, ", "));
  }
  return places;
}

}  // namespace strait
