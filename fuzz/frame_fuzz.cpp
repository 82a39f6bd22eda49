// parse_frame() on any bytes, and the round trip of a sealed frame. A mutation hardly ever keeps the checksum,
// so the second part is what gets behind it.

#include <algorithm>
#include <vector>

#include "strait/wire/frame.h"

namespace {

using strait::ByteReader;
using strait::Direction;
using strait::FrameHeader;

void parse_raw(std::span<const std::byte> bytes) {
  try {
    const strait::Frame frame = strait::parse_frame(bytes);
    STRAIT_CHECK(frame.payload.size() == bytes.size() - strait::kFrameHeaderSize,
                 "the payload has another size");
    strait::expect_header(frame.header, frame.header);
  } catch (const strait::WireError&) {  // the right answer to bytes that are no frame
  }
  try {
    STRAIT_CHECK(strait::frame_size(bytes) <= bytes.size(), "a frame is longer than its space");
  } catch (const strait::WireError&) {
  }
}

void round_trip(std::span<const std::byte> bytes) {
  constexpr size_t kFields = 6 * sizeof(uint16_t) + sizeof(uint32_t) + sizeof(uint64_t);
  if (bytes.size() < kFields) return;
  ByteReader in(bytes);
  FrameHeader header;
  header.codec = in.get<uint16_t>();
  header.link = in.get<uint16_t>();
  header.boundary = in.get<uint16_t>();
  header.direction = static_cast<Direction>(in.get<uint16_t>() & 1);
  header.micro_batch = in.get<uint32_t>();
  header.step = in.get<uint16_t>();
  header.batch = in.get<uint16_t>();
  header.sequence = in.get<uint64_t>();
  const auto payload = in.take(in.left());
  std::vector<std::byte> sealed(strait::kFrameHeaderSize + payload.size());
  std::ranges::copy(payload, sealed.begin() + strait::kFrameHeaderSize);
  strait::seal_frame(sealed, header);
  header.payload_size = payload.size();
  const strait::Frame frame = strait::parse_frame(sealed);
  STRAIT_CHECK(frame.header == header && std::ranges::equal(frame.payload, payload),
               "a sealed frame has changed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  parse_raw(bytes);
  round_trip(bytes);
  return 0;
}
