#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "strait/base/bytes.h"

namespace strait {

/// Which way a message crosses a boundary: activations go forward, gradients backward.
enum class Direction : uint8_t { activation = 0, gradient = 1 };

/// `activation` or `gradient`.
std::string_view to_string(Direction direction);

/// A frame's first four bytes: "STRT" in little-endian order.
constexpr uint32_t kFrameMagic = 0x54525453;  // "STRT"

/// The version of the format that this code writes, and the only one that it reads.
constexpr uint16_t kWireVersion = 3;

/// Bytes of a frame before its payload. One cache line, so that the payload of an aligned buffer is
/// aligned too.
constexpr size_t kFrameHeaderSize = 64;

/// The header's fields but for magic, version and checksum. docs/wire_format.md gives the offsets.
struct FrameHeader {
  uint16_t codec = 0;                           ///< Codec::id()
  uint16_t link = 0;                            ///< Link::id()
  uint16_t boundary = 0;                        ///< counted from 0 at the input
  Direction direction = Direction::activation;  ///< of the message
  uint32_t micro_batch = 0;                     ///< position in the batch
  uint16_t step = 0;                            ///< the low bits of MessageContext::step
  uint16_t batch = 0;         ///< tells the batch from others where the sender knows how; 0 where it does not
  uint64_t sequence = 0;      ///< messages sent before this one over the same boundary and direction
  uint64_t payload_size = 0;  ///< bytes behind the header

  bool operator==(const FrameHeader&) const = default;
};

/// Whether a frame's checksum counts. A frame that never leaves the process may be trusted to be the one
/// that was sealed; its checksum is zero.
enum class FrameCheck : uint8_t { verify, trust };

/// Completes a frame whose payload already stands at frame[kFrameHeaderSize...]: writes the header and
/// the checksum. `header.payload_size` is set from the span.
void seal_frame(std::span<std::byte> frame, FrameHeader header, FrameCheck check = FrameCheck::verify);

/// A frame that was parsed in place.
struct Frame {
  FrameHeader header;                  ///< as it stands in the frame
  std::span<const std::byte> payload;  ///< aliases the parsed bytes
};

/// Checks magic, version, reserved bytes, direction, length and checksum; throws WireError.
Frame parse_frame(std::span<const std::byte> bytes, FrameCheck check = FrameCheck::verify);

/// The size of the frame at the beginning of a larger space, as its header says. Throws WireError when that is
/// not a header or the space is too small.
size_t frame_size(std::span<const std::byte> space);

/// Throws WireError that names the first field in which the header differs from what the receiver's
/// own configuration says. payload_size is not compared, and the batch only where both ends know it.
void expect_header(const FrameHeader& got, const FrameHeader& expected);

}  // namespace strait
