#include "strait/report/changes.h"

#include <fmt/format.h>

#include <vector>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/report/folders.h"
#include "strait/report/tables.h"

namespace strait::report {
namespace {

using std::filesystem::path;

/// Whether there is such a file.
bool add_file(const path& file, std::string& text) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed) return false;
  const auto time = std::filesystem::last_write_time(file, failed);
  if (failed) return false;
  text += fmt::format("{} {} {}\n", file.string(), size, time.time_since_epoch().count());
  return true;
}

/// Whether the folder is a run's.
bool add_run_files(const path& folder, std::string& text) {
  if (!add_file(folder / "status.json", text)) return false;
  for (const char* name : {"config.toml", "metrics.jsonl"}) add_file(folder / name, text);
  return true;
}

/// What `folders` gives; none where it cannot read what it needs.
template <class Folders>
std::vector<path> if_readable(const Folders& folders) {
  try {
    return folders();
  } catch (const InputError&) {
    return {};
  }
}

/// A run or a sweep ends the search, as it does for read_tables().
void add_folder(const path& folder, std::string& text) {
  if (add_run_files(folder, text)) return;
  if (add_file(folder / "sweep.json", text)) {
    const auto runs = if_readable(
        [&] { return folders_of_sweep(folder, read_whole(folder / "sweep.json", kJsonBytesMost)); });
    for (const auto& run : runs) add_run_files(run, text);
    return;
  }
  for (const auto& inner : if_readable([&] { return folders_in(folder); })) add_folder(inner, text);
}

}  // namespace

std::string files_of(std::span<const path> folders) {
  std::string text;
  for (const auto& folder : folders) add_folder(folder, text);
  return text;
}

}  // namespace strait::report
