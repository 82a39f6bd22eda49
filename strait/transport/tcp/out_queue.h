#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "strait/base/bytes.h"
#include "strait/transport/tcp/message.h"

namespace strait::tcp {

/// The bytes of a session from one side to the other, from the first that the other side has not confirmed.
/// They are kept until then: another connection may have to carry them again.
class OutQueue {
 public:
  /// Appends a message.
  void push(const MessageHeader& header, Buffer payload);

  /// What is to be written next, some of it; empty: all is written. Good until the next call of a member.
  std::span<const std::byte> next();

  /// So many of these bytes are written.
  void advance(size_t bytes) { written_ += bytes; }

  /// The other side has had so many bytes since the beginning: they are freed. False where there were never so
  /// many.
  bool confirm(uint64_t bytes);

  /// What the other side has not confirmed is to be written again.
  void rewind() { written_ = confirmed_; }

  /// Bytes appended, written, confirmed since the beginning.
  uint64_t pushed() const { return pushed_; }
  uint64_t written() const { return written_; }
  uint64_t confirmed() const { return confirmed_; }

 private:
  struct Segment {
    uint64_t begin;  ///< of the header, counted from the beginning of the session
    std::array<std::byte, kHeaderSize> header;
    Buffer payload;
    uint64_t end() const { return begin + kHeaderSize + payload.size(); }
  };
  static std::span<const std::byte> part_of(const Segment& segment, uint64_t from);

  std::deque<Segment> segments_;
  uint64_t pushed_ = 0;
  uint64_t written_ = 0;
  uint64_t confirmed_ = 0;
  std::vector<std::byte> together_;  ///< small parts that are written at once
};

}  // namespace strait::tcp
