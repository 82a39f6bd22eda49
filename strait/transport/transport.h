#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "strait/base/bytes.h"
#include "strait/wire/frame.h"

namespace strait {

/// Tells apart the messages that may be under way at once between two stages, in 30 bits: 1 direction, 10
/// boundary, 19 micro-batch. c10d takes the positive half of an int32 as a tag; so the upper half of that is
/// for these, and the lower half for others.
class Tag {
 public:
  /// Boundaries that a tag can tell apart. The highest number is left for messages that belong to none.
  static constexpr uint32_t kBoundaries = (1U << 10) - 1;

  /// Micro-batches that a tag can tell apart.
  static constexpr uint32_t kMicroBatches = 1U << 19;

  /// The tag of a message. A number that does not fit is a broken invariant.
  Tag(uint32_t boundary, Direction direction, uint32_t micro_batch)
      : value_((static_cast<uint32_t>(direction) << 29) | (boundary << 19) | micro_batch) {
    STRAIT_CHECK(boundary < kBoundaries && micro_batch < kMicroBatches,
                 "boundary {} or micro-batch {} does not fit into a tag", boundary, micro_batch);
  }

  /// The boundary that the message crosses.
  uint32_t boundary() const { return (value_ >> 19) & kBoundaries; }

  /// The way in which it crosses.
  Direction direction() const { return static_cast<Direction>(value_ >> 29); }

  /// The micro-batch that it belongs to.
  uint32_t micro_batch() const { return value_ & (kMicroBatches - 1); }

  /// Whether the other one crosses the same boundary the same way.
  bool is_same_channel(const Tag& other) const { return value_ >> 19 == other.value_ >> 19; }

  /// All of it as one number, from 0 and below 2^30.
  int32_t value() const { return static_cast<int32_t>(value_); }

  /// Whether both name the same message.
  bool operator==(const Tag& other) const { return value_ == other.value_; }

  /// An order for maps.
  bool operator<(const Tag& other) const { return value_ < other.value_; }

 private:
  uint32_t value_;
};

/// Carries payloads that stay on a device, beside the frames that announce them. Those of one boundary and
/// direction come in the order in which they were sent. One thread may send while another receives.
class DeviceWire {
 public:
  virtual ~DeviceWire() = default;

  /// Sends bytes of a device, uint8 of one dimension, as they are behind what the calling thread has given the
  /// current stream. Does not wait.
  virtual void send(Tag tag, const at::Tensor& bytes) = 0;

  /// The next `size` bytes, of which a frame has told, on this end's device; what the calling thread gives its
  /// stream next comes behind them. Throws Error when they do not come.
  virtual at::Tensor receive(Tag tag, size_t size) = 0;
};

/// Carries sealed frames between stages. Messages of one tag arrive in the order in which they were sent. One
/// thread may send while another expects and receives.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Hands the message over; does not wait for the receiver, unless it is far behind.
  virtual void send(Tag tag, Buffer message) = 0;

  /// Says that a message of that tag, at most `bound` bytes, will be asked for.
  virtual void expect(Tag /*tag*/, size_t /*bound*/) {}

  /// The next message of that tag, at most `bound` bytes. Throws WireError for one that is not a frame, and
  /// Error when none comes.
  virtual Buffer receive(Tag tag, size_t bound) = 0;

  /// Waits until all messages that were sent have gone.
  virtual void drain() {}

  /// From any thread: ends every wait with Error, those to come too.
  virtual void cancel() {}

  /// Throws what a wait for a message of the tag would that ended now, where it cannot come any more.
  virtual void check(Tag /*tag*/) const {}

  /// What carries payloads from device to device between the ends of the tag's boundary; null where nothing
  /// does.
  virtual DeviceWire* device_wire(Tag /*tag*/) { return nullptr; }

  /// Whether frames need a checksum on their way.
  virtual FrameCheck frame_check() const { return FrameCheck::verify; }
};

}  // namespace strait
