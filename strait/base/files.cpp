#include "strait/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/host.h"

namespace strait {
namespace {

constexpr mode_t kFileMode = 0644;
constexpr std::string_view kPartial = ".partial";

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

/// Whether it is what make_beside() puts behind a name and a dot.
bool is_end_of_unfinished(std::string_view end) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t dash = end.find_first_not_of(kDigits);
  if (dash == 0 || dash == std::string_view::npos || end[dash] != '-') return false;
  const size_t dot = end.find_first_not_of(kDigits, dash + 1);
  return dot != std::string_view::npos && dot > dash + 1 && end.substr(dot) == kPartial;
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return "a device or a socket";
}

std::filesystem::file_type type_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::none) return type;
  throw InputError("{}: cannot be read: {}", path.string(), error.message());
}

}  // namespace

bool is_of_disk(int reason) { return reason == ENOSPC || reason == EDQUOT || reason == EIO; }

void begin_in_folder(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::filesystem::filesystem_error& error) {
    fail_to_write<InputError>(error.code().value(),
                              fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const DiskError&) {
    throw;
  } catch (const Error& error) {
    throw InputError("{}", error.what());
  }
}

OutputFile::OutputFile(const std::filesystem::path& path)
    : OutputFile(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode), path.string()) {}

OutputFile::OutputFile(int descriptor, std::string name) : name_(std::move(name)), descriptor_(descriptor) {
  check(descriptor_ >= 0);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::check(bool worked) const {
  const int reason = errno;
  if (!worked) fail_to_write(reason, fmt::format("{}: cannot be written: {}", name_, std::strerror(reason)));
}

void OutputFile::write(std::span<const std::byte> bytes) { check(write_all(descriptor_, bytes)); }

void OutputFile::finish() {
  check(::fsync(descriptor_) == 0);
  check(::close(std::exchange(descriptor_, -1)) == 0);
}

NewFile make_beside(const std::filesystem::path& path) {
  static std::atomic<uint64_t> count = 0;
  while (true) {
    std::filesystem::path name = fmt::format("{}.{}-{}{}", path.string(), ::getpid(), ++count, kPartial);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
    // Processes of other machines and containers, and of the past, may have the same number.
    if (file >= 0 || errno != EEXIST) return {std::move(name), file};
  }
}

void remove_unfinished(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string begin = path.filename().string() + ".";
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    const std::string name = item->path().filename().string();
    if (name.starts_with(begin) && is_end_of_unfinished(name.substr(begin.size())))
      found.push_back(item->path());
  }
  if (error) throw Error("{}: cannot be read: {}", folder.string(), error.message());
  for (const auto& file : found) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) {
      throw Error("{}: cannot be removed: {}", file.string(), std::strerror(errno));
    }
  }
}

void replace_file(const std::filesystem::path& path, const std::function<void(const ByteSink&)>& write) {
  const auto [temporary, descriptor] = make_beside(path);
  OutputFile file(descriptor, path.string());
  try {
    write([&](std::span<const std::byte> part) { file.write(part); });
    file.finish();
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
      const int reason = errno;
      fail_to_write(reason, fmt::format("{}: cannot be written: {}", path.string(), std::strerror(reason)));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  replace_file(path, [&](const ByteSink& sink) { sink(std::as_bytes(std::span(content))); });
}

void append_to_file(const std::filesystem::path& path, std::string_view content) {
  OutputFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode), path.string());
  file.write(std::as_bytes(std::span(content)));
}

void sync_to_disk(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = file >= 0 && ::fsync(file) == 0;
  const int reason = errno;
  if (file >= 0) ::close(file);
  if (synced) return;
  fail_to_write(
      reason, fmt::format("{}: cannot be made to last on the disk: {}", path.string(), std::strerror(reason)));
}

InputFile::InputFile(const std::filesystem::path& path)
    : name_(path.string()), descriptor_(::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw InputError("{}: cannot be opened: {}", name_, std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw InputError("{}: expected a file, found {}", name_, kind_of(status.st_mode));
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError("{}: cannot be read at offset {}: {}", name_, offset, std::strerror(errno));
    if (got == 0) throw InputError("{}: ends at offset {}, expected {} bytes", name_, offset, size_);
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
}

bool is_there(const std::filesystem::path& path) {
  return type_of(path) != std::filesystem::file_type::not_found;
}

bool has_file(const std::filesystem::path& path) {
  return type_of(path) == std::filesystem::file_type::regular;
}

bool has_folder(const std::filesystem::path& path) {
  return type_of(path) == std::filesystem::file_type::directory;
}

std::filesystem::path nearest_there(const std::filesystem::path& path) {
  std::error_code error;  // what cannot be looked at is not there
  std::filesystem::path there = std::filesystem::absolute(path, error);
  while (there.has_relative_path() && !std::filesystem::exists(there, error)) there = there.parent_path();
  return there;
}

std::string read_whole(const std::filesystem::path& path, uint64_t most) {
  const InputFile file(path);
  if (file.size() > most) {
    throw InputError("{}: has {} bytes, expected at most {}", file.name(), file.size(), most);
  }
  if (file.size() > free_memory()) {
    throw InputError("{}: has {} bytes, more than memory has room for", file.name(), file.size());
  }
  std::string content(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(content)));
  return content;
}

}  // namespace strait
