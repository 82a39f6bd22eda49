#include "strait/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
#include "strait/report/config_values.h"
#include "strait/run/json_reader.h"

namespace strait::report {
namespace {

using std::filesystem::path;

Variant& variant_named(Table& table, const std::string& name) {
  const auto found = std::ranges::find(table.variants, name, &Variant::name);
  if (found != table.variants.end()) return *found;
  return table.variants.emplace_back(Variant{name, {}, {}});
}

/// The last parts of a path, so many of them.
std::string end_of(path folder, int parts) {
  path end;
  for (; parts > 0 && folder.has_filename(); --parts) {
    end = end.empty() ? folder.filename() : folder.filename() / end;
    folder = folder.parent_path();
  }
  return end.string();
}

/// Whether the run differs from those of the variant in its seed alone.
bool belongs_to(const Run& run, const Variant& variant) {
  const Run& first = variant.runs.front();
  if (first.name != run.name || std::ranges::find(variant.runs, run.seed, &Run::seed) != variant.runs.end()) {
    return false;
  }
  const ConfigValues values = deciding_values(run.config);
  return !values.empty() && values == deciding_values(first.config);
}

/// The name that a row of its own gets: that of the run, and where another row has it with as much of the
/// folder as tells them apart.
std::string name_of_row(const Table& table, const Run& run) {
  std::string name = run.name;
  const auto is_taken = [&] {
    return std::ranges::find(table.variants, name, &Variant::name) != table.variants.end();
  };
  for (int parts = 1; is_taken(); ++parts) name = fmt::format("{} ({})", run.name, end_of(run.path, parts));
  return name;
}

void add_run(Table& table, Run run) {
  const auto own =
      std::ranges::find_if(table.variants, [&](const Variant& variant) { return belongs_to(run, variant); });
  if (own != table.variants.end()) {
    own->runs.push_back(std::move(run));
  } else {
    std::string name = name_of_row(table, run);
    table.variants.push_back({std::move(name), {}, {std::move(run)}});
  }
}

/// The run's folder, which lies in the sweep's: a report shows nothing from elsewhere.
path folder_of(const JsonReader& entry, const path& sweep) {
  const std::string name = entry.text("folder");
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!plain) entry.at("folder").fail("the name of a folder in the sweep's folder");
  return sweep / name;
}

/// A run that the sweep knows of. What a killed process could not write into status.json, the sweep did, with
/// the reason; numbers of another configuration, which the sweep will replace, are not the variant's.
Run read_sweep_run(const JsonReader& entry, const path& sweep) {
  const path folder = folder_of(entry, sweep);
  const std::string hash = entry.text("config_hash");
  const Status known = status_named(entry.text("status")).value_or(Status::waiting);
  Run run;
  if (is_run(folder)) run = read_run(folder);
  if (run.config_hash != hash) {
    const bool other = !run.config_hash.empty();
    run = Run{};
    run.folder = folder.filename().string();
    run.config_hash = hash;
    if (known == Status::failed) {
      run.status = known;
      run.error = entry.optional_text("error");
    }
    if (other && run.error.empty()) run.error = "the folder holds a run of another configuration";
  } else if (run.status == Status::running && known != Status::waiting) {
    run.status = known;
    if (run.error.empty()) run.error = entry.optional_text("error");
  }
  run.seed = entry.count("seed");
  return run;
}

bool is_sweep(const path& folder) { return has_file(folder / "sweep.json"); }

std::vector<path> folders_in(const path& folder) {
  std::error_code error;
  std::error_code unknown;  // of an entry, which then is none
  std::vector<path> found;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) found.push_back(entry->path());
  }
  if (error) throw InputError("{}: cannot be read: {}", folder.string(), error.message());
  std::ranges::sort(found);
  return found;
}

/// How far a run has come.
auto progress_of(const Run& run) {
  return std::tuple(is_final(run.status), run.status != Status::waiting, run.epochs.size());
}

/// The configurations of a sweep's runs by variant and seed.
std::map<std::pair<std::string, uint64_t>, std::string> hashes_of(const Table& sweep) {
  std::map<std::pair<std::string, uint64_t>, std::string> hashes;
  for (const auto& variant : sweep.variants) {
    for (const auto& run : variant.runs) hashes[{variant.name, run.seed}] = run.config_hash;
  }
  return hashes;
}

/// Takes from `other`, which has the same runs, those that have come further there.
void take_further(const Table& other, Table& sweep) {
  for (const auto& variant : other.variants) {
    for (const auto& run : variant.runs) {
      Run& own = *std::ranges::find(variant_named(sweep, variant.name).runs, run.seed, &Run::seed);
      if (progress_of(run) > progress_of(own)) own = run;
    }
  }
}

/// Finds tables in folders, each folder once.
class TableSearch {
 public:
  /// Whether the folder holds a sweep or runs. A sweep of which there is one already is no table of its own.
  bool add(const path& folder) {
    if (!is_new(folder)) return true;
    if (is_sweep(folder)) {
      add_sweep(parse_sweep(folder, read_whole(folder / "sweep.json", kJsonBytesMost)), folder);
      return true;
    }
    const std::string name = folder.filename().string();
    Table table{name, name, {}};
    std::vector<path> others;
    for (const auto& inner : folders_in(folder)) {
      if (is_run(inner)) {
        add_run(table, read_run(inner));
      } else {
        others.push_back(inner);
      }
    }
    bool found = !table.variants.empty();
    if (found) found_.push_back({std::move(table), folder, false});
    for (const auto& other : others) found = add(other) || found;
    return found;
  }

  /// Whether the folder was not given before, by whatever path.
  bool is_new(const path& folder) {
    std::error_code error;
    const path real = std::filesystem::canonical(folder, error);
    return seen_.insert(error ? folder : real).second;
  }

  /// What was found, in order.
  std::vector<Table> tables() && {
    tell_apart(&Table::name);
    tell_apart(&Table::title);
    std::vector<Table> tables;
    for (auto& each : found_) tables.push_back(std::move(each.table));
    return tables;
  }

 private:
  struct Found {
    Table table;
    path folder;
    bool is_sweep;
  };

  void add_sweep(Table sweep, const path& folder) {
    const auto same = std::ranges::find_if(found_, [&](const Found& other) {
      return other.is_sweep && other.table.name == sweep.name && hashes_of(other.table) == hashes_of(sweep);
    });
    if (same == found_.end()) {
      found_.push_back({std::move(sweep), folder, true});
    } else {
      take_further(sweep, same->table);
    }
  }

  /// Where several tables have a name, each gets as much of its folder behind it as tells them apart.
  void tell_apart(std::string Table::*name) {
    std::map<std::string, std::vector<Found*>> by_name;
    for (auto& each : found_) by_name[each.table.*name].push_back(&each);
    for (const auto& [text, same] : by_name) {
      if (same.size() == 1) continue;
      int parts = 0;
      std::set<std::string> ends;
      while (ends.size() < same.size()) {
        ends.clear();
        ++parts;
        for (const auto* each : same) ends.insert(end_of(each->folder, parts));
      }
      for (auto* each : same) each->table.*name = fmt::format("{} ({})", text, end_of(each->folder, parts));
    }
  }

  std::vector<Found> found_;
  std::set<path> seen_;
};

/// The first names, and how many more there are.
std::string names_of(const Table& table) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kNamed, table.variants.size()); ++i) names.push_back(table.variants[i].name);
  const size_t others = table.variants.size() - names.size();
  return list_of(names) + (others > 0 ? fmt::format(" and {} more", others) : "");
}

/// Without a slash at its end or a dot, so that the last part is a name.
path clean(const path& folder) {
  const path whole = std::filesystem::absolute(folder).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

Table parse_sweep(const path& folder, std::string_view text) {
  const JsonText parsed(text, (folder / "sweep.json").string());
  const JsonReader sweep = parsed.root();
  Table table{sweep.text("name"), sweep.optional_text("title"), {}};
  if (table.title.empty()) table.title = table.name;
  const JsonReader runs = sweep.at("runs");
  for (size_t i = 0; i < runs.size(); ++i) {
    const JsonReader entry = runs.at(i);
    Variant& variant = variant_named(table, entry.text("variant"));
    if (entry.has("paper")) {
      const JsonReader paper = entry.at("paper");
      variant.published = {paper.optional_number("off"), paper.optional_number("on")};
    }
    variant.runs.push_back(read_sweep_run(entry, folder));
    variant.runs.back().name = variant.name;
  }
  return table;
}

std::vector<path> folders_of_sweep(const path& folder, std::string_view text) {
  const JsonText parsed(text, (folder / "sweep.json").string());
  const JsonReader runs = parsed.root().at("runs");
  std::vector<path> folders;
  for (size_t i = 0; i < runs.size(); ++i) folders.push_back(folder_of(runs.at(i), folder));
  return folders;
}

std::vector<Table> read_tables(std::span<const path> folders) {
  TableSearch search;
  Table single{"runs", "", {}};
  for (const auto& given : folders) {
    std::error_code error;
    if (!std::filesystem::is_directory(given, error)) throw InputError("{}: is not a folder", given.string());
    const path folder = clean(given);
    if (is_run(folder)) {
      if (search.is_new(folder)) add_run(single, read_run(folder));
    } else if (!search.add(folder)) {
      throw InputError(
          "{}: expected the folder of a run, of a sweep or of several, found no status.json and "
          "no sweep.json in it",
          given.string());
    }
  }
  std::vector<Table> tables = std::move(search).tables();
  if (!single.variants.empty()) {
    single.title = names_of(single);
    tables.insert(tables.begin(), std::move(single));
  }
  return tables;
}

}  // namespace strait::report
