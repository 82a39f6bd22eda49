#include "strait/report/grid.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "strait/report/config_values.h"

namespace strait::report {
namespace {

constexpr size_t kKeysMost = 32;  // that vary and are tried; a sweep varies a few

/// A variant with the configuration of its runs.
struct Configured {
  const Variant* variant;
  ConfigValues values;
};

std::vector<Configured> configured_variants(const Table& table) {
  std::vector<Configured> found;
  for (const auto& variant : table.variants) {
    const auto run = std::ranges::find_if(variant.runs, [](const Run& run) { return !run.config.empty(); });
    if (run == variant.runs.end()) continue;
    if (ConfigValues values = config_values(run->config); !values.empty())
      found.push_back({&variant, std::move(values)});
  }
  return found;
}

/// The keys that all have, with more than one value.
std::vector<std::string> varied_keys(const std::vector<Configured>& variants) {
  std::vector<std::string> keys;
  if (variants.empty()) return keys;
  for (const auto& [key, first] : variants.front().values) {
    bool is_everywhere = true;
    bool is_varied = false;
    for (const auto& other : variants) {
      const auto value = other.values.find(key);
      is_everywhere = is_everywhere && value != other.values.end();
      is_varied = is_varied || (is_everywhere && value->second != first);
    }
    if (is_everywhere && is_varied && keys.size() < kKeysMost) keys.push_back(key);
  }
  return keys;
}

/// The variants that two keys place, each by the numbers of its values, while rows and columns are taken out.
struct Candidate {
  std::string down;
  std::string across;
  std::vector<const Configured*> variants;
  std::vector<std::array<size_t, 2>> places;  // of the variants: row and column
};

/// How many variants each row (0) or column (1) has; those taken out have none.
std::vector<size_t> counts(const Candidate& candidate, size_t axis) {
  std::vector<size_t> found;
  for (const auto& place : candidate.places) {
    found.resize(std::max(found.size(), place[axis] + 1));
    ++found[place[axis]];
  }
  return found;
}

size_t used(const std::vector<size_t>& counts) {
  return counts.size() - static_cast<size_t>(std::ranges::count(counts, 0U));
}

size_t filled_cells(const Candidate& candidate) {
  return std::set(candidate.places.begin(), candidate.places.end()).size();
}

bool is_full_enough(const Candidate& candidate) {
  return 4 * filled_cells(candidate) >= 3 * used(counts(candidate, 0)) * used(counts(candidate, 1));
}

/// How many variants of each row (0) or column (1) are alone in their column or row, which goes with them.
std::vector<size_t> alone(const Candidate& candidate, size_t axis) {
  const auto across = counts(candidate, 1 - axis);
  std::vector<size_t> found(counts(candidate, axis).size());
  for (const auto& place : candidate.places) found[place[axis]] += across[place[1 - axis]] == 1 ? 1 : 0;
  return found;
}

/// Takes out the row or column, of more than two, with the smallest share of its cells filled; of equal ones
/// that with the most variants that are alone across it, then the last. Returns false when there is none.
bool drop_emptiest(Candidate& candidate) {
  const std::array<std::vector<size_t>, 2> lines = {counts(candidate, 0), counts(candidate, 1)};
  std::pair<double, double> least(2, 0);  // share, and the number of those alone below zero
  std::array<size_t, 2> dropped{};        // axis and number
  for (const size_t axis : {0, 1}) {
    if (used(lines[axis]) <= 2) continue;
    const auto cells = static_cast<double>(used(lines[1 - axis]));
    const auto single = alone(candidate, axis);
    for (size_t line = 0; line < lines[axis].size(); ++line) {
      const std::pair found(static_cast<double>(lines[axis][line]) / cells, -static_cast<double>(single[line]));
      if (found.first == 0 || found > least) continue;
      least = found;
      dropped = {axis, line};
    }
  }
  if (least.first == 2) return false;
  for (size_t i = candidate.variants.size(); i-- > 0;) {
    if (candidate.places[i][dropped[0]] != dropped[1]) continue;
    candidate.places.erase(candidate.places.begin() + static_cast<ptrdiff_t>(i));
    candidate.variants.erase(candidate.variants.begin() + static_cast<ptrdiff_t>(i));
  }
  return true;
}

/// Whether variants in the same row or column have the same value of the key.
bool follows(const Candidate& candidate, const std::string& key, size_t axis) {
  std::map<size_t, std::string_view> seen;
  for (size_t i = 0; i < candidate.variants.size(); ++i) {
    const std::string_view value = candidate.variants[i]->values.at(key);
    if (seen.emplace(candidate.places[i][axis], value).first->second != value) return false;
  }
  return true;
}

bool is_grid(const Candidate& candidate, const std::vector<std::string>& keys) {
  return is_full_enough(candidate) && filled_cells(candidate) == candidate.variants.size() &&
         used(counts(candidate, 0)) > 1 && used(counts(candidate, 1)) > 1 &&
         std::ranges::all_of(keys, [&](const std::string& key) {
           return follows(candidate, key, 0) || follows(candidate, key, 1);
         });
}

size_t place_of(std::vector<std::string>& values, const std::string& value) {
  const auto found = std::ranges::find(values, value);
  if (found != values.end()) return static_cast<size_t>(found - values.begin());
  values.push_back(value);
  return values.size() - 1;
}

/// All variants, without the rows and columns that leave too many cells empty.
Candidate candidate_of(const std::string& down, const std::string& across,
                       const std::vector<Configured>& variants) {
  Candidate candidate{down, across, {}, {}};
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  for (const auto& variant : variants) {
    candidate.variants.push_back(&variant);
    candidate.places.push_back(
        {place_of(rows, variant.values.at(down)), place_of(columns, variant.values.at(across))});
  }
  while (2 * candidate.variants.size() >= variants.size() && !is_full_enough(candidate)) {
    if (!drop_emptiest(candidate)) break;
  }
  return candidate;
}

Grid grid_of(const Candidate& candidate) {
  Grid grid{candidate.down, candidate.across, {}, {}, {}};
  std::map<std::pair<size_t, size_t>, const Variant*> cells;
  for (const auto* variant : candidate.variants) {
    const size_t row = place_of(grid.rows, variant->values.at(grid.down));
    cells[{row, place_of(grid.columns, variant->values.at(grid.across))}] = variant->variant;
  }
  grid.cells.assign(grid.rows.size(), std::vector<const Variant*>(grid.columns.size()));
  for (const auto& [place, variant] : cells) grid.cells[place.first][place.second] = variant;
  return grid;
}

}  // namespace

std::optional<Grid> find_grid(const Table& table) {
  const auto variants = configured_variants(table);
  const auto keys = varied_keys(variants);
  std::optional<Candidate> best;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (size_t j = i + 1; j < keys.size(); ++j) {
      Candidate candidate = candidate_of(keys[i], keys[j], variants);
      if (2 * candidate.variants.size() < table.variants.size() || !is_grid(candidate, keys)) continue;
      if (!best || candidate.variants.size() > best->variants.size()) best = std::move(candidate);
    }
  }
  return best ? std::optional(grid_of(*best)) : std::nullopt;
}

}  // namespace strait::report
