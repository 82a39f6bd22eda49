#include "strait/base/mapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "strait/base/error.h"

namespace strait {

MappedMemory::MappedMemory(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  // A name that is taken away at once, for file systems that have no files without one.
  std::string name = (folder / "store-XXXXXX").string();
  file_ = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ >= 0) return;
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) throw InputError("{}: cannot hold a file: {}", folder.string(), std::strerror(errno));
  ::unlink(name.c_str());
}

MappedMemory::~MappedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
  if (file_ >= 0) ::close(file_);
}

void MappedMemory::grow(size_t size) {
  if (size <= size_) return;
  // A page of the mapping that the disk has no room for would end the process, so the room is taken here.
  if (has_file()) {
    const int error = ::posix_fallocate(file_, static_cast<off_t>(size_), static_cast<off_t>(size - size_));
    if (error != 0) throw Error("a store of {} bytes cannot grow to {}: {}", size_, size, std::strerror(error));
  }
  const int flags = has_file() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* data = data_ == nullptr ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file_, 0)
                                : ::mremap(data_, size_, size, MREMAP_MAYMOVE);
  if (data == MAP_FAILED) {
    throw Error("a store of {} bytes cannot grow to {}: {}", size_, size, std::strerror(errno));
  }
  data_ = static_cast<std::byte*>(data);
  size_ = size;
}

// Both are advice: where the system does not take it, the data is read and written all the same.

void MappedMemory::read_ahead(size_t offset, size_t size) const {
  if (has_file()) {
    ::posix_fadvise(file_, static_cast<off_t>(offset), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
  }
}

void MappedMemory::write_behind(size_t offset, size_t size) const {
  if (has_file()) {
    ::sync_file_range(file_, static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE);
  }
}

}  // namespace strait
