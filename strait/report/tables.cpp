#include "strait/report/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
#include "strait/run/json_reader.h"

namespace strait::report {
namespace {

using std::filesystem::path;

Variant& variant_named(Table& table, const std::string& name) {
  const auto found = std::ranges::find(table.variants, name, &Variant::name);
  if (found != table.variants.end()) return *found;
  return table.variants.emplace_back(Variant{name, {}, {}});
}

void add_run(Table& table, Run run) {
  auto& runs = variant_named(table, run.name).runs;
  runs.push_back(std::move(run));
}

/// The run's folder, which lies in the sweep's: a report shows nothing from elsewhere.
path folder_of(const JsonReader& entry, const path& sweep) {
  const std::string name = entry.text("folder");
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!plain) entry.at("folder").fail("the name of a folder in the sweep's folder");
  return sweep / name;
}

/// A run that the sweep knows of. What a killed process could not write into status.json, the sweep did;
/// numbers of another configuration, which the sweep will replace, are not the variant's.
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
    if (other) run.error = "the folder holds a run of another configuration";
    if (known == Status::failed) run.status = known;
  } else if (run.status == Status::running && known != Status::waiting) {
    run.status = known;
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

void find_tables(const path& folder, std::vector<Table>& tables) {
  if (is_sweep(folder)) {
    tables.push_back(parse_sweep(folder, read_whole(folder / "sweep.json", kJsonBytesMost)));
    return;
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
  if (!table.variants.empty()) tables.push_back(std::move(table));
  for (const auto& other : others) find_tables(other, tables);
}

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

std::vector<Table> read_tables(std::span<const path> folders) {
  std::vector<Table> tables;
  Table single{"runs", "", {}};
  for (const auto& given : folders) {
    std::error_code error;
    if (!std::filesystem::is_directory(given, error)) throw InputError("{}: is not a folder", given.string());
    const path folder = clean(given);
    const size_t before = tables.size();
    if (is_run(folder)) {
      add_run(single, read_run(folder));
      continue;
    }
    find_tables(folder, tables);
    if (tables.size() == before) {
      throw InputError(
          "{}: expected the folder of a run, of a sweep or of several, found no status.json and "
          "no sweep.json in it",
          given.string());
    }
  }
  if (!single.variants.empty()) {
    single.title = names_of(single);
    tables.insert(tables.begin(), std::move(single));
  }
  return tables;
}

}  // namespace strait::report
