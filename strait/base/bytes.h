#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "strait/base/error.h"

namespace strait {

static_assert(std::endian::native == std::endian::little,
              "strait's wire format and files are little-endian and are read and written in place");

/// An owned block of bytes, 64-byte aligned and not initialised on allocation. Moves, never copies.
class Buffer {
 public:
  /// Bytes to which data() is aligned: a cache line.
  static constexpr size_t kAlignment = 64;

  Buffer() = default;

  /// Allocates `capacity` bytes, of which none are in use. Throws std::bad_alloc.
  explicit Buffer(size_t capacity)
      : data_(static_cast<std::byte*>(::operator new[](capacity, std::align_val_t(kAlignment)))),
        capacity_(capacity) {}

  /// The first byte; null for a buffer without capacity.
  std::byte* data() { return data_.get(); }

  /// The same, to read.
  const std::byte* data() const { return data_.get(); }

  /// Bytes in use.
  size_t size() const { return size_; }

  /// Bytes allocated.
  size_t capacity() const { return capacity_; }

  /// Sets the number of bytes in use; `size` is at most the capacity.
  void resize(size_t size) {
    STRAIT_CHECK(size <= capacity_, "buffer of {} bytes cannot hold {}", capacity_, size);
    size_ = size;
  }

  /// The bytes in use.
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

  /// The same, to write.
  std::span<std::byte> bytes() { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t(kAlignment)); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  size_t capacity_ = 0;
  size_t size_ = 0;
};

/// Writes into a span of fixed size. Running over its end is a broken invariant, because the caller
/// sized the span with a bound.
class ByteWriter {
 public:
  /// Writes from the beginning of `space`, which must outlive the writer.
  explicit ByteWriter(std::span<std::byte> space) : space_(space) {}

  /// The next `size` bytes, to be filled by the caller.
  std::span<std::byte> claim(size_t size) {
    STRAIT_CHECK(size <= space_.size() - used_, "payload bound exceeded: {} of {} bytes used, {} wanted", used_,
                 space_.size(), size);
    auto part = space_.subspan(used_, size);
    used_ += size;
    return part;
  }

  /// The space not claimed yet, for producers that learn their size while writing; follow with claim().
  std::span<std::byte> rest() const { return space_.subspan(used_); }

  /// Appends the value's bytes as they stand in memory, little-endian.
  template <class T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(claim(sizeof(T)).data(), &value, sizeof(T));
  }

  /// Bytes claimed so far.
  size_t used() const { return used_; }

 private:
  std::span<std::byte> space_;
  size_t used_ = 0;
};

/// Reads from bytes that nobody vouches for: every read is checked and a short one throws WireError.
class ByteReader {
 public:
  /// `owner` keeps the bytes alive for whoever wants to keep using them in place; without one they are
  /// only good until the reader's maker takes them back.
  explicit ByteReader(std::span<const std::byte> bytes, std::shared_ptr<void> owner = nullptr)
      : bytes_(bytes), owner_(std::move(owner)) {}

  /// What keeps the bytes alive; null where nobody said.
  const std::shared_ptr<void>& owner() const { return owner_; }

  /// The next `size` bytes, in place. Throws WireError when fewer are left.
  std::span<const std::byte> take(size_t size) {
    if (size > left()) {
      throw WireError("message ends at byte {} where {} more bytes were expected", bytes_.size(),
                      size - left());
    }
    auto part = bytes_.subspan(used_, size);
    used_ += size;
    return part;
  }

  /// The next value, little-endian at any alignment. Throws WireError when too few bytes are left.
  template <class T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  /// Bytes taken so far.
  size_t used() const { return used_; }

  /// Bytes not taken yet.
  size_t left() const { return bytes_.size() - used_; }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<void> owner_;
  size_t used_ = 0;
};

}  // namespace strait
