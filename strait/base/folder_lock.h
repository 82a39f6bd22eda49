#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace strait {

/// Keeps others from working in a folder while it lives: a lock (flock) on a file `.lock` in it, which the
/// kernel gives up when the process ends in whatever way. A file that is left behind then locks nothing. On a
/// file system without locks there is none.
class FolderLock {
 public:
  /// Makes the folder where it is missing. `suffix` tells apart those who may work there side by side. Throws
  /// InputError that names the folder when another one holds the lock and does not end within a second, or when
  /// nothing can be written there; DiskError where a disk is full or fails.
  explicit FolderLock(const std::filesystem::path& folder, const std::string& suffix = "");

  /// Removes the file, and the folder if it was made here and nothing has come into it.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  void make_folder(const std::filesystem::path& folder);
  bool try_to_lock(const std::filesystem::path& folder);
  void remove_made();

  std::filesystem::path file_;
  std::vector<std::filesystem::path> made_;  ///< folders, the innermost first
  int descriptor_ = -1;
};

}  // namespace strait
