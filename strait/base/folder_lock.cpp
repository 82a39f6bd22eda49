#include "strait/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>

#include "strait/base/clock.h"
#include "strait/base/error.h"
#include "strait/base/files.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

/// A process that was killed with its launcher may take a moment to be gone.
constexpr double kPatienceSeconds = 1;
constexpr auto kBetweenTries = std::chrono::milliseconds(20);

/// Whether the file of that name is the open one: the one who held the lock before may have removed it.
bool is_named(int descriptor, const fs::path& file) {
  struct stat open_one {};
  struct stat named {};
  return ::fstat(descriptor, &open_one) == 0 && ::stat(file.c_str(), &named) == 0 &&
         open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

}  // namespace

FolderLock::FolderLock(const fs::path& folder, const std::string& suffix) : file_(folder / (".lock" + suffix)) {
  make_folder(folder);
  for (const Stopwatch waited; !try_to_lock(folder);) {
    if (waited.seconds() > kPatienceSeconds) {
      throw InputError("{}: another process trains here", folder.string());
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

bool FolderLock::try_to_lock(const fs::path& folder) {
  constexpr mode_t kMode = 0644;
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
  if (descriptor_ < 0) {
    const int reason = errno;
    remove_made();
    fail_to_write<InputError>(reason,
                              fmt::format("{}: cannot be written: {}", folder.string(), std::strerror(reason)));
  }
  const bool is_held = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (!is_held && is_named(descriptor_, file_)) return true;
  ::close(descriptor_);
  return false;
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
  if (!error) error = std::make_error_code(std::errc::not_a_directory);
  fail_to_write<InputError>(error.value(),
                            fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
}

void FolderLock::remove_made() {
  for (const auto& path : made_) {
    if (::rmdir(path.c_str()) != 0) return;
  }
}

}  // namespace strait
