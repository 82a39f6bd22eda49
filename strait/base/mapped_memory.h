#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace strait {

/// A block of zeroed bytes that can grow, in memory or over a file without a name, which vanishes with the
/// process however that ends. Pages take memory or disk space only once they are written.
class MappedMemory {
 public:
  /// In memory.
  MappedMemory() = default;

  /// Over a file in `folder`, which is made where it is missing. Throws InputError where it can hold none.
  explicit MappedMemory(const std::filesystem::path& folder);

  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  /// Makes room for `size` bytes in all; the content stays, its address may change. Throws Error when there
  /// is no room.
  void grow(size_t size);

  /// All of the block, until the next grow().
  std::span<std::byte> bytes() { return {data_, size_}; }

  /// The same, to read.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  /// Whether the block lies over a file.
  bool has_file() const { return file_ >= 0; }

  /// Asks the system to read a part of the file soon. Safe beside every other function.
  void read_ahead(size_t offset, size_t size) const;

  /// Asks the system to begin writing a part of the file to the disk, so that changed pages do not pile up
  /// until somebody must wait for them. Safe beside every other function.
  void write_behind(size_t offset, size_t size) const;

 private:
  int file_ = -1;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace strait
