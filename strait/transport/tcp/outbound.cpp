#include "strait/transport/tcp/outbound.h"

#include <algorithm>

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

constexpr uint64_t kAhead = uint64_t{16}
                            << 10;  // bytes that are put in the order of the session before they go

}  // namespace

bool Outbound::send(const Channel& channel, Buffer payload) {
  const std::scoped_lock lock(mutex_);
  (channel.is_urgent() ? urgent_ : messages_).emplace_back(channel, std::move(payload));
  return !std::exchange(told_, true);
}

bool Outbound::give_room(const Channel& lane) {
  const std::scoped_lock lock(mutex_);
  ++room_[lane];
  return !std::exchange(told_, true);
}

bool Outbound::leave() {
  const std::scoped_lock lock(mutex_);
  leaves_ = true;
  return !std::exchange(told_, true);
}

std::span<const std::byte> Outbound::next(uint64_t received) {
  if (queue_.pushed() - queue_.written() < kAhead) fill(received);
  return queue_.next();
}

void Outbound::fill(uint64_t received) {
  const std::scoped_lock lock(mutex_);
  told_ = false;
  const auto push = [&](MessageHeader::Type type, const Channel& channel, uint64_t size, Buffer payload) {
    queue_.push({.type = type, .channel = channel, .size = size, .received = received}, std::move(payload));
    beats_ = false;
  };
  for (const auto& [lane, messages] : room_) push(MessageHeader::Type::taken, lane, messages, {});
  room_.clear();
  for (auto* messages : {&urgent_, &messages_}) {
    while (!messages->empty() && queue_.pushed() - queue_.written() < kAhead) {
      auto [channel, payload] = std::move(messages->front());
      messages->pop_front();
      const size_t size = payload.size();
      const uint64_t begin = queue_.pushed();
      push(MessageHeader::Type::data, channel, size, std::move(payload));
      sent_.push_back({.begin = begin, .end = queue_.pushed()});
    }
  }
  if (leaves_ && urgent_.empty() && messages_.empty()) {
    const uint64_t begin = queue_.pushed();
    push(MessageHeader::Type::leave, {}, 0, {});
    sent_.push_back({.begin = begin, .end = queue_.pushed()});
    leaves_ = false;
  }
  if (beats_) push(MessageHeader::Type::beat, {}, alive_, {});
}

uint64_t Outbound::confirm(uint64_t bytes) {
  if (!queue_.confirm(bytes)) {
    throw WireError("{} bytes are confirmed, expected at most {}", bytes, queue_.written());
  }
  uint64_t messages = 0;
  for (; !sent_.empty() && sent_.front().end <= bytes; sent_.pop_front()) ++messages;
  return messages;
}

uint64_t Outbound::confirmed_part() const {
  if (sent_.empty()) return 0;
  return std::max(queue_.confirmed(), sent_.front().begin) - sent_.front().begin;
}

void Outbound::carry_on_from(uint64_t bytes) {
  if (bytes < queue_.confirmed() || bytes > queue_.written()) {
    throw WireError("{} bytes have come, expected {} to {}", bytes, queue_.confirmed(), queue_.written());
  }
  queue_.confirm(bytes);
  queue_.rewind();
}

}  // namespace strait::tcp
