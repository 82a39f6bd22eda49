#include "strait/report/folders.h"

#include <algorithm>

#include "strait/base/error.h"

namespace strait::report {

std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::error_code unknown;  // of an entry, which then is none
  std::vector<std::filesystem::path> found;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->is_directory(unknown) && !entry->is_symlink(unknown)) found.push_back(entry->path());
  }
  if (error) throw InputError("{}: cannot be read: {}", folder.string(), error.message());
  std::ranges::sort(found);
  return found;
}

}  // namespace strait::report
