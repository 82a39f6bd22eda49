#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace strait {

/// Writes a bit stream, least significant bit first: bit i of the stream is bit i % 8 of byte i / 8.
/// Runs over the end of its span quietly: full() tells, and what was written is then useless. Bytes of
/// the span behind size() may be overwritten.
class BitWriter {
 public:
  /// Writes from the beginning of `space`, which must outlive the writer.
  explicit BitWriter(std::span<std::byte> space) : space_(space) {}

  /// Appends the low `count` bits of `value`; count <= 56 and the bits above them are zero.
  void put(uint64_t value, unsigned count) {
    pending_ |= value << filled_;
    filled_ += count;
    store(filled_ / 8);
  }

  /// Appends `count` zero bits; any count.
  void put_zeros(uint64_t count) {
    for (; count > 56 && !full_; count -= 56) put(0, 56);
    put(0, static_cast<unsigned>(std::min<uint64_t>(count, 56)));
  }

  /// Pads the last byte with zero bits. Only then do size() and full() tell of all that was put.
  void finish() {
    filled_ = (filled_ + 7) / 8 * 8;
    store(filled_ / 8);
  }

  /// Whole bytes written so far.
  size_t size() const { return used_; }

  /// Whether the span was too small for what was put.
  bool full() const { return full_; }

 private:
  /// Writes the first of the pending bytes, and mostly more than is used: a store is cheaper than a branch that
  /// waits for a byte to be full.
  void store(unsigned bytes) {
    const size_t room = space_.size() - used_;
    if (room >= sizeof(pending_)) {
      std::memcpy(space_.data() + used_, &pending_, sizeof(pending_));
    } else if (bytes <= room) {
      if (bytes > 0) std::memcpy(space_.data() + used_, &pending_, bytes);
    } else {
      full_ = true;
      pending_ = 0;
      filled_ = 0;
      return;
    }
    used_ += bytes;
    pending_ >>= bytes * 8;  // 7 bytes at most, for count <= 56
    filled_ -= bytes * 8;
  }

  std::span<std::byte> space_;
  size_t used_ = 0;
  uint64_t pending_ = 0;
  unsigned filled_ = 0;
  bool full_ = false;
};

/// Reads a bit stream of the same order. Behind the end it reads zero bits; position() tells.
class BitReader {
 public:
  /// Reads from the beginning of `bytes`, which must outlive the reader.
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The next available() bits, 57 or more, without consuming them.
  uint64_t peek() const {
    const size_t byte = position_ / 8;
    uint64_t word = 0;
    if (byte + sizeof(word) <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, sizeof(word));
    } else if (byte < bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, bytes_.size() - byte);
    }
    return word >> (position_ % 8);
  }

  /// Bits that peek() gives: 57 to 64.
  unsigned available() const { return 64 - static_cast<unsigned>(position_ % 8); }

  /// Consumes `count` bits, at most available().
  void skip(size_t count) { position_ += count; }

  /// Bits consumed so far.
  size_t position() const { return position_; }

  /// Bits in all.
  size_t size() const { return bytes_.size() * 8; }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace strait
