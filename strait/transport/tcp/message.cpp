#include "strait/transport/tcp/message.h"

#include "strait/base/bytes.h"

namespace strait::tcp {
namespace {

uint64_t most_bytes_on(const Channel& channel) { return channel.is_urgent() ? kMaxUrgent : kMaxPayload; }

}  // namespace

void check_size(const Channel& channel, uint64_t size, const std::string& where) {
  const uint64_t limit = most_bytes_on(channel);
  if (size > limit) throw WireError("{}: a message of {} bytes, expected at most {}", where, size, limit);
}

void write_header(std::span<std::byte, kHeaderSize> bytes, const MessageHeader& header) {
  ByteWriter out(bytes);
  out.put(header.type);
  out.put(header.channel.kind);
  out.put(header.channel.instance);
  out.put(header.channel.tag);
  out.put(header.size);
  out.put(header.received);
}

MessageHeader read_header(std::span<const std::byte, kHeaderSize> bytes) {
  ByteReader in(bytes);
  MessageHeader header;
  header.type = in.get<MessageHeader::Type>();
  header.channel.kind = in.get<Kind>();
  header.channel.instance = in.get<uint16_t>();
  header.channel.tag = in.get<uint32_t>();
  header.size = in.get<uint64_t>();
  header.received = in.get<uint64_t>();
  if (header.type > MessageHeader::Type::leave || header.channel.kind > kLastKind) {
    throw WireError("a message of type {} and kind {}, expected at most {} and {}",
                    static_cast<int>(header.type), static_cast<int>(header.channel.kind),
                    static_cast<int>(MessageHeader::Type::leave), static_cast<int>(kLastKind));
  }
  const uint64_t limit = most_bytes_on(header.channel);
  if (header.size > limit) {
    throw WireError("a message of {} bytes, expected at most {}", header.size, limit);
  }
  return header;
}

}  // namespace strait::tcp
