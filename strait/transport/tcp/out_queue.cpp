#include "strait/transport/tcp/out_queue.h"

#include <algorithm>
#include <iterator>

namespace strait::tcp {
namespace {

constexpr size_t kTogether = size_t{16} << 10;  // a TLS record

}  // namespace

void OutQueue::push(const MessageHeader& header, Buffer payload) {
  Segment& segment = segments_.emplace_back(Segment{pushed_, {}, std::move(payload)});
  write_header(segment.header, header);
  pushed_ = segment.end();
}

std::span<const std::byte> OutQueue::part_of(const Segment& segment, uint64_t from) {
  const auto offset = static_cast<size_t>(from - segment.begin);
  if (offset < kHeaderSize) return std::span(segment.header).subspan(offset);
  return segment.payload.bytes().subspan(offset - kHeaderSize);
}

std::span<const std::byte> OutQueue::next() {
  auto segment =
      std::ranges::upper_bound(segments_, written_, {}, [](const Segment& one) { return one.end(); });
  if (segment == segments_.end()) return {};
  const auto first = part_of(*segment, written_);
  if (first.size() >= kTogether) return first;
  together_.assign(first.begin(), first.end());
  for (uint64_t at = written_ + first.size(); segment != segments_.end() && together_.size() < kTogether;) {
    if (at == segment->end()) {
      ++segment;
      continue;
    }
    const auto part = part_of(*segment, at);
    const auto taken = part.first(std::min(part.size(), kTogether - together_.size()));
    together_.insert(together_.end(), taken.begin(), taken.end());
    at += taken.size();
  }
  return together_;
}

bool OutQueue::confirm(uint64_t bytes) {
  if (bytes > written_) return false;
  confirmed_ = std::max(confirmed_, bytes);
  while (!segments_.empty() && segments_.front().end() <= confirmed_) segments_.pop_front();
  return true;
}

}  // namespace strait::tcp
