#include "strait/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "strait/base/error.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

/// Whether the file of that name is the open one: the one who held the lock before may have removed it.
bool is_named(int descriptor, const fs::path& file) {
  struct stat open_one {};
  struct stat named {};
  return ::fstat(descriptor, &open_one) == 0 && ::stat(file.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, const std::string& suffix) : file_(folder / (".lock" + suffix)) {
  constexpr mode_t kMode = 0644;
  make_folder(folder);
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
    if (descriptor_ < 0) {
      const int reason = errno;
      remove_made();
      throw InputError("{}: cannot be written: {}", folder.string(), std::strerror(reason));
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw InputError("{}: another process trains here", folder.string());
    }
  } while (!is_named(descriptor_, file_));
}

FolderLock::~FolderLock() {
  ::unlink(file_.c_str());
  ::close(descriptor_);
  remove_made();
}

void FolderLock::make_folder(const fs::path& folder) {
  std::error_code error;
  for (fs::path path = fs::absolute(folder).lexically_normal();
       !fs::exists(path, error) && path.has_relative_path(); path = path.parent_path()) {
    if (path.has_filename()) made_.push_back(path);
  }
  fs::create_directories(folder, error);
  if (!error && fs::is_directory(folder)) return;
  remove_made();
  throw InputError("{}: cannot make the folder: {}", folder.string(),
                   error ? error.message() : std::strerror(ENOTDIR));
}

void FolderLock::remove_made() {
  for (const auto& path : made_) {
    if (::rmdir(path.c_str()) != 0) return;
  }
}

}  // namespace strait
