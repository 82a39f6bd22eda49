#include "strait/experiment/sweep.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/experiment/layers.h"
#include "strait/experiment/reader.h"

namespace strait {
namespace {

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

/// The variants as tables, each with a name that no other has.
std::vector<TomlTable> take_variants(TomlTable& root, const std::filesystem::path& path) {
  constexpr std::string_view kExpected = "an array of tables, one [[variants]] a run";
  Origin origin{path.string(), 0};
  std::vector<TomlTable> variants;
  std::vector<std::string> names;
  for (auto& item : take_array(root, "variants", kExpected, origin)) {
    auto* table = item.get<TomlTable>();
    if (table == nullptr) {
      throw InputError("{}: variants: expected {}, found {} in it", item.origin.text(), kExpected,
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
  if (variants.empty()) throw InputError("{}: variants: expected {}, found none", origin.text(), kExpected);
  return variants;
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

}  // namespace

Sweep load_sweep(const std::filesystem::path& path) {
  TomlTable root = load_layers(path);
  const auto variants = take_variants(root, path);
  const auto seeds = take_seeds(root, variants);
  Sweep sweep{read_config(root).name, {}};
  for (const auto& variant : variants) {
    TomlTable merged = root;
    merge(merged, variant);
    if (seeds.empty()) sweep.runs.push_back(read_config(merged));
    for (const auto& seed : seeds) {
      merged.insert_or_assign("seed", seed);
      sweep.runs.push_back(read_config(merged));
      if (seeds.size() > 1) sweep.runs.back().name += fmt::format("-seed{}", sweep.runs.back().seed);
    }
  }
  return sweep;
}

}  // namespace strait
