// The bytes of a session: Inbound on any bytes, and what Outbound sends over connections that break off
// anywhere.

#include <algorithm>
#include <map>
#include <vector>

#include "strait/base/error.h"
#include "strait/transport/tcp/inbound.h"
#include "strait/transport/tcp/outbound.h"

namespace {

using namespace strait::tcp;
using strait::Buffer;
using strait::ByteReader;

/// Takes what it is given, as a connection would bring it.
class Receiver {
 public:
  void take(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto space = in_.space();
      STRAIT_CHECK(!space.empty(), "no space for what comes");
      const size_t part = std::min(space.size(), bytes.size());
      std::ranges::copy(bytes.first(part), space.begin());
      if (auto message = in_.got(part)) messages.push_back(std::move(*message));
      bytes = bytes.subspan(part);
    }
  }
  uint64_t received() const { return in_.received(); }

  std::vector<std::pair<MessageHeader, Buffer>> messages;

 private:
  Inbound in_;
};

/// A header may promise 4 GiB, for which room is made but not touched; that is too much for a fuzzer.
bool promises_much(std::span<const std::byte> bytes) {
  constexpr size_t kSizeAt = 8;
  if (bytes.size() < kHeaderSize) return false;
  ByteReader in(bytes.subspan(kSizeAt));
  return in.get<uint64_t>() > 1 << 20;
}

void take_raw(std::span<const std::byte> bytes) {
  if (promises_much(bytes)) return;
  Receiver receiver;
  try {
    receiver.take(bytes.first(std::min(bytes.size(), kHeaderSize)));
    for (const auto& [header, payload] : receiver.messages) {
      std::array<std::byte, kHeaderSize> again{};
      write_header(again, header);
      STRAIT_CHECK(std::ranges::equal(again, bytes.first(kHeaderSize)), "a header is not what was read");
    }
  } catch (const strait::WireError&) {  // the right answer to bytes that are no header
  }
}

void round_trip(ByteReader in) {
  Outbound out;
  Receiver receiver;
  std::map<Channel, std::vector<std::vector<std::byte>>> sent;
  const auto lose_connection = [&] { out.carry_on_from(receiver.received()); };
  while (in.left() >= 4) {
    const auto what = in.get<uint8_t>();
    const auto tag = in.get<uint8_t>();
    const auto size = in.get<uint16_t>();
    if (what < 120) {
      const auto bytes = in.take(std::min<size_t>(in.left(), size % 300));
      const Channel channel{
          .kind = static_cast<Kind>(what % (static_cast<int>(kLastKind) + 1)), .instance = 0, .tag = tag};
      Buffer message(bytes.size());
      message.resize(bytes.size());
      std::ranges::copy(bytes, message.bytes().begin());
      out.send(channel, std::move(message));
      sent[channel].emplace_back(bytes.begin(), bytes.end());
    } else if (what < 220) {
      const auto next = out.next(0);
      const auto part = next.first(std::min<size_t>(next.size(), size));
      out.wrote(part.size());
      if (what % 4 == 0) {
        lose_connection();  // and with it what was written
      } else {
        receiver.take(part);
      }
      if (what % 8 == 1) out.confirm(receiver.received());
    } else {
      lose_connection();
    }
  }
  for (auto next = out.next(0); !next.empty(); next = out.next(0)) {
    receiver.take(next);
    out.wrote(next.size());
  }
  std::map<Channel, std::vector<std::vector<std::byte>>> got;
  for (const auto& [header, payload] : receiver.messages) {
    if (header.type != MessageHeader::Type::data) continue;
    const auto bytes = payload.bytes();
    got[header.channel].emplace_back(bytes.begin(), bytes.end());
  }
  STRAIT_CHECK(got == sent, "messages are lost, twice or out of order");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  take_raw(bytes);
  round_trip(ByteReader(bytes));
  return 0;
}
