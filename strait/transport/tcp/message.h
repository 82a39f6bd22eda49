#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>

// What goes over a session between two ranks: messages, each a header and a payload. Numbers are little-endian.
//
//   what it is (u8), kind (u8), instance (u16), tag (u32), size (u64), received (u64), then `size` bytes of
//   data
namespace strait::tcp {

/// What a message is about.
enum class Kind : uint8_t {
  frame,         ///< of a transport
  tensor,        ///< of Group::send()
  text,          ///< of Group::gather()
  control,       ///< of a control channel
  confirmation,  ///< that a control message was handled
  failure,       ///< why a rank ends
  missing,       ///< who has not come yet
  call,          ///< from rank 0: a rank cannot reach the receiver, who is to connect to it
};
inline constexpr Kind kLastKind = Kind::call;

/// Messages of one channel come in their order.
struct Channel {
  Kind kind = Kind::frame;
  uint16_t instance = 0;  ///< which of the transports or control channels that the ranks made one after another
  uint32_t tag = 0;

  bool operator==(const Channel&) const = default;

  /// An order for maps.
  bool operator<(const Channel& other) const {
    return std::tie(kind, instance, tag) < std::tie(other.kind, other.instance, other.tag);
  }

  /// Those for whom the receiver's room is one: the frames that cross a boundary in one direction.
  Channel lane() const { return {kind, instance, kind == Kind::frame ? tag >> 19 : 0}; }

  /// Whether the receiver has room for any number of messages: they are few, and small.
  bool is_urgent() const { return kind >= Kind::control; }
};

/// What comes before a payload.
struct MessageHeader {
  enum class Type : uint8_t {
    beat,   ///< nothing but `received`, and in `size` how lately its sender has heard of others; see below
    data,   ///< a payload of `size` bytes
    taken,  ///< the receiver has room again for `size` messages of that lane
    leave,  ///< the sender ends in order; nothing follows
  };
  Type type = Type::beat;
  Channel channel = {};
  uint64_t size = 0;
  uint64_t received = 0;  ///< bytes of the other direction that the sender has had so far

  bool operator==(const MessageHeader&) const = default;
};

// A beat's `size` is 0, or one more than the milliseconds since its sender, which waits for another rank than
// the receiver, has heard of that one, or has begun to wait.

/// Bytes of a header.
inline constexpr size_t kHeaderSize = 24;

/// Most bytes of a payload that nobody asked for beforehand.
inline constexpr uint64_t kMaxPayload = uint64_t{1} << 32;

/// Most bytes of an urgent one.
inline constexpr uint64_t kMaxUrgent = uint64_t{1} << 16;

/// Throws WireError, which says `where`, for a payload that the receiver would not take.
void check_size(const Channel& channel, uint64_t size, const std::string& where);

void write_header(std::span<std::byte, kHeaderSize> bytes, const MessageHeader& header);

/// Throws WireError for what is not a header, or one of a payload that is too long.
MessageHeader read_header(std::span<const std::byte, kHeaderSize> bytes);

}  // namespace strait::tcp
