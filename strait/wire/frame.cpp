#include "strait/wire/frame.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // redirects XXH3 to the widest vectors of the processor
#endif

#include <algorithm>

namespace strait {
namespace {

constexpr size_t kChecksumOffset = 40;
constexpr size_t kPayloadSizeOffset = kChecksumOffset - sizeof(uint64_t);
constexpr size_t kTailOffset = kChecksumOffset + sizeof(uint64_t);

/// XXH3-64 of the payload, seeded with XXH3-64 of the header's fields: one pass, and a change in either
/// part changes the sum.
uint64_t checksum(std::span<const std::byte> fields, std::span<const std::byte> payload) {
  return XXH3_64bits_withSeed(payload.data(), payload.size(), XXH3_64bits(fields.data(), fields.size()));
}

void put_fields(ByteWriter& out, const FrameHeader& header) {
  out.put(kFrameMagic);
  out.put(kWireVersion);
  out.put(header.codec);
  out.put(header.link);
  out.put(header.boundary);
  out.put(static_cast<uint32_t>(header.direction));
  out.put(header.micro_batch);
  out.put(header.step);
  out.put(header.batch);
  out.put(header.sequence);
  out.put(header.payload_size);
}

}  // namespace

std::string_view to_string(Direction direction) {
  return direction == Direction::activation ? "activation" : "gradient";
}

void seal_frame(std::span<std::byte> frame, FrameHeader header, FrameCheck check) {
  STRAIT_CHECK(frame.size() >= kFrameHeaderSize, "a frame of {} bytes has no room for its header",
               frame.size());
  const auto payload = frame.subspan(kFrameHeaderSize);
  header.payload_size = payload.size();
  ByteWriter out(frame.first(kFrameHeaderSize));
  put_fields(out, header);
  STRAIT_CHECK(out.used() == kChecksumOffset, "header fields take {} bytes", out.used());
  out.put<uint64_t>(check == FrameCheck::verify ? checksum(frame.first(kChecksumOffset), payload) : 0);
  std::ranges::fill(out.rest(), std::byte{0});
}

Frame parse_frame(std::span<const std::byte> bytes, FrameCheck check) {
  if (bytes.size() < kFrameHeaderSize) {
    throw WireError("frame of {} bytes is shorter than its {}-byte header", bytes.size(), kFrameHeaderSize);
  }
  ByteReader in(bytes);
  if (const auto magic = in.get<uint32_t>(); magic != kFrameMagic) {
    throw WireError("frame begins with {:#010x}, not with {:#010x}", magic, kFrameMagic);
  }
  if (const auto version = in.get<uint16_t>(); version != kWireVersion) {
    throw WireError("frame has wire version {}, this program speaks {}", version, kWireVersion);
  }
  FrameHeader header;
  header.codec = in.get<uint16_t>();
  header.link = in.get<uint16_t>();
  header.boundary = in.get<uint16_t>();
  const auto direction = in.get<uint32_t>();
  if (direction > 1) throw WireError("frame has direction {}, expected 0 or 1", direction);
  header.direction = static_cast<Direction>(direction);
  header.micro_batch = in.get<uint32_t>();
  header.step = in.get<uint16_t>();
  header.batch = in.get<uint16_t>();
  header.sequence = in.get<uint64_t>();
  header.payload_size = in.get<uint64_t>();
  const auto sum = in.get<uint64_t>();
  const auto tail = bytes.subspan(kTailOffset, kFrameHeaderSize - kTailOffset);
  if (std::ranges::any_of(tail, [](std::byte b) { return b != std::byte{0}; })) {
    throw WireError("reserved bytes of the frame header are not zero");
  }
  const auto payload = bytes.subspan(kFrameHeaderSize);
  if (header.payload_size != payload.size()) {
    throw WireError("frame announces {} payload bytes and has {}", header.payload_size, payload.size());
  }
  if (check == FrameCheck::verify && sum != checksum(bytes.first(kChecksumOffset), payload)) {
    throw WireError("frame checksum does not match");
  }
  return {header, payload};
}

size_t frame_size(std::span<const std::byte> space) {
  if (space.size() < kFrameHeaderSize) {
    throw WireError("{} bytes came, expected at least the {} of a frame's header", space.size(),
                    kFrameHeaderSize);
  }
  ByteReader in(space);
  if (in.get<uint32_t>() != kFrameMagic) throw WireError("what came does not begin as a frame");
  ByteReader size(space.subspan(kPayloadSizeOffset));
  const auto payload = size.get<uint64_t>();
  if (payload > space.size() - kFrameHeaderSize) {
    throw WireError("frame announces {} payload bytes where at most {} fit", payload,
                    space.size() - kFrameHeaderSize);
  }
  return kFrameHeaderSize + payload;
}

void expect_header(const FrameHeader& got, const FrameHeader& expected) {
  const auto expect = [](std::string_view field, uint64_t have, uint64_t want) {
    if (have != want) throw WireError("frame has {} {}, expected {}", field, have, want);
  };
  expect("boundary", got.boundary, expected.boundary);
  expect("direction", static_cast<uint64_t>(got.direction), static_cast<uint64_t>(expected.direction));
  expect("codec", got.codec, expected.codec);
  expect("link", got.link, expected.link);
  expect("micro-batch", got.micro_batch, expected.micro_batch);
  expect("sequence", got.sequence, expected.sequence);
  expect("step", got.step, expected.step);
  if (got.batch != 0 && expected.batch != 0 && got.batch != expected.batch) {
    throw WireError(
        "frame is of another batch than the receiver's; expected the same batches in the same order in every "
        "process");
  }
}

}  // namespace strait
