#include "strait/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json_reader.h"
#include "strait/base/text.h"
#include "strait/report/config_values.h"
#include "strait/report/folders.h"

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

/// A table of runs that belong to no sweep.
class RunTable {
 public:
  explicit RunTable(const std::string& name) : table_{name, name, {}} {}

  /// Adds the run to the first row whose runs differ from it in their seeds alone, else as a row of its own.
  void add(Run run) {
    const ConfigValues values = deciding_values(run.config);
    std::vector<size_t>& rows = rows_[{run.name, values}];
    const auto own = std::ranges::find_if(rows, [&](size_t row) {
      const auto& runs = table_.variants[row].runs;
      return !values.empty() && std::ranges::find(runs, run.seed, &Run::seed) == runs.end();
    });
    if (own != rows.end()) {
      table_.variants[*own].runs.push_back(std::move(run));
      return;
    }
    rows.push_back(table_.variants.size());
    std::string name = name_of_row(run);
    table_.variants.push_back({std::move(name), {}, {std::move(run)}});
  }

  bool is_empty() const { return table_.variants.empty(); }
  const Table& table() const { return table_; }

 private:
  /// That of the run, and where another row has it with as much of the folder as tells them apart.
  std::string name_of_row(const Run& run) const {
    std::string name = run.name;
    const auto is_taken = [&] {
      return std::ranges::find(table_.variants, name, &Variant::name) != table_.variants.end();
    };
    const auto depth = std::distance(run.path.begin(), run.path.end());
    for (int parts = 1; is_taken(); ++parts) {
      name = fmt::format("{} ({})", run.name, end_of(run.path, parts));
      if (parts > depth) name += fmt::format(" {}", parts - depth + 1);  // others are called so
    }
    return name;
  }

  Table table_;
  std::map<std::pair<std::string, ConfigValues>, std::vector<size_t>> rows_;  // by name and configuration
};

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

/// The first names, and how many more there are.
std::string names_of(const Table& table) {
  constexpr size_t kNamed = 3;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kNamed, table.variants.size()); ++i) names.push_back(table.variants[i].name);
  const size_t others = table.variants.size() - names.size();
  return list_of(names) + (others > 0 ? fmt::format(" and {} more", others) : "");
}

/// Finds tables in folders, each folder once.
class TableSearch {
 public:
  /// A run of the first table, unless it is in another already.
  void add_given(const path& folder) {
    if (is_new(folder)) given_.add(read_run(folder));
  }

  /// Whether the folder holds a sweep or runs. A sweep of which there is one already is no table of its own.
  bool add(const path& folder) {
    if (!is_new(folder)) return true;
    if (is_sweep(folder)) {
      add_sweep(parse_sweep(folder, read_whole(folder / "sweep.json", kJsonBytesMost)), folder);
      return true;
    }
    RunTable runs(folder.filename().string());
    std::vector<path> others;
    bool found = false;
    for (const auto& inner : folders_in(folder)) {
      if (!is_run(inner)) {
        others.push_back(inner);
        continue;
      }
      found = true;
      if (is_new(inner)) runs.add(read_run(inner));
    }
    if (!runs.is_empty()) found_.push_back({runs.table(), folder, false});
    for (const auto& other : others) found = add(other) || found;
    return found;
  }

  /// What was found, in order.
  std::vector<Table> tables() && {
    std::vector<Table> tables;
    if (!given_.is_empty()) {
      tables.push_back(given_.table());
      tables.front().title = names_of(given_.table());
    }
    tell_apart(&Table::name, tables);
    tell_apart(&Table::title, tables);
    for (auto& each : found_) tables.push_back(std::move(each.table));
    return tables;
  }

 private:
  struct Found {
    Table table;
    path folder;
    bool is_sweep;
  };

  /// Whether the folder was not given before, by whatever path.
  bool is_new(const path& folder) { return seen_.insert(real_path(folder)).second; }

  static path real_path(const path& folder) {
    std::error_code error;
    const path real = std::filesystem::canonical(folder, error);
    return error ? folder : real;
  }

  void add_sweep(Table sweep, const path& folder) {
    for (const auto& variant : sweep.variants) {
      for (const auto& run : variant.runs) seen_.insert(real_path(run.path));
    }
    const auto same = std::ranges::find_if(found_, [&](const Found& other) {
      return other.is_sweep && other.table.name == sweep.name && hashes_of(other.table) == hashes_of(sweep);
    });
    if (same == found_.end()) {
      found_.push_back({std::move(sweep), folder, true});
    } else {
      take_further(sweep, same->table);
    }
  }

  /// Where several tables have a name, or one that of a table without a folder, each gets as much of its folder
  /// behind it as tells them apart.
  void tell_apart(std::string Table::*name, const std::vector<Table>& without_folder) {
    std::map<std::string, std::vector<Found*>> by_name;
    for (auto& each : found_) by_name[each.table.*name].push_back(&each);
    for (const auto& [text, same] : by_name) {
      const bool is_taken = std::ranges::find(without_folder, text, name) != without_folder.end();
      if (same.size() == 1 && !is_taken) continue;
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

  RunTable given_{"runs"};
  std::vector<Found> found_;
  std::set<path> seen_;
};

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
  std::vector<path> runs;
  for (const auto& given : folders) {
    std::error_code error;
    if (!std::filesystem::is_directory(given, error)) throw InputError("{}: is not a folder", given.string());
    const path folder = clean(given);
    if (is_run(folder)) {
      runs.push_back(folder);
    } else if (!search.add(folder)) {
      throw InputError(
          "{}: expected the folder of a run, of a sweep or of several, found no status.json and "
          "no sweep.json in it",
          given.string());
    }
  }
  for (const auto& run : runs) search.add_given(run);  // of those that no other table has
  return std::move(search).tables();
}

}  // namespace strait::report
