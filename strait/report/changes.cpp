#include "strait/report/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace strait::report {
namespace {

using std::filesystem::path;

void add_file(const path& file, std::string& text) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  if (failed) return;
  const auto time = std::filesystem::last_write_time(file, failed);
  if (!failed) text += fmt::format("{} {} {}\n", file.string(), size, time.time_since_epoch().count());
}

/// A run ends the search, as it does for read_tables().
void add_folder(const path& folder, std::string& text) {
  const size_t before = text.size();
  for (const char* name : {"status.json", "config.toml", "metrics.jsonl"}) add_file(folder / name, text);
  if (text.size() > before) return;
  add_file(folder / "sweep.json", text);
  std::error_code failed;
  std::vector<path> inner;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    std::error_code unknown;
    if (entry.is_directory(unknown) && !entry.is_symlink(unknown)) inner.push_back(entry.path());
  }
  std::ranges::sort(inner);
  for (const auto& each : inner) add_folder(each, text);
}

}  // namespace

std::string files_of(std::span<const path> folders) {
  std::string text;
  for (const auto& folder : folders) add_folder(folder, text);
  return text;
}

}  // namespace strait::report
