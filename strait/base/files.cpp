#include "strait/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "strait/base/error.h"

namespace strait {
namespace {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }
  bool close() { return ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

bool write_all(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

bool write_file(const std::string& name, std::span<const std::span<const std::byte>> parts) {
  Descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.get() < 0) return false;
  for (const auto part : parts) {
    if (!write_all(file.get(), part)) return false;
  }
  return ::fsync(file.get()) == 0 && file.close();
}

}  // namespace

void replace_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts) {
  const std::string temporary = path.string() + ".partial";
  if (!write_file(temporary, parts) || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    throw Error("{}: cannot be written: {}", path.string(), std::strerror(reason));
  }
}

void replace_file(const std::filesystem::path& path, std::string_view content) {
  const std::span<const std::byte> part = std::as_bytes(std::span(content));
  replace_file(path, std::span(&part, 1));
}

}  // namespace strait
