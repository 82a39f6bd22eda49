#include "tests/device/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace strait::fake {
namespace {

void merge(Clock& into, const Clock& other) {
  for (size_t i = 0; i < kStreams; ++i) into[i] = std::max(into[i], other[i]);
}

void make_happen(Uses& uses) {
  if (auto write = std::exchange(uses.late_write, nullptr)) write();
}

}  // namespace

bool Streams::is_behind(size_t stream, size_t other, uint64_t time) const {
  return stream == other || std::max(clocks_[stream][other], host_[other]) >= time;
}

void Streams::note(std::string message) { races_.push_back(std::move(message)); }

void Streams::run(size_t stream, const std::vector<Uses*>& reads, const std::vector<Uses*>& writes) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = ++clocks_[stream][stream];
  for (Uses* uses : reads) {
    make_happen(*uses);
    if (!is_behind(stream, uses->writer, uses->written_at)) {
      note(fmt::format("stream {} reads what stream {} writes", stream, uses->writer));
    }
    uses->read_at[stream] = now;
  }
  for (Uses* uses : writes) {
    make_happen(*uses);
    if (!is_behind(stream, uses->writer, uses->written_at)) {
      note(fmt::format("stream {} writes what stream {} writes", stream, uses->writer));
    }
    for (size_t other = 0; other < kStreams; ++other) {
      if (is_behind(stream, other, uses->read_at[other])) continue;
      note(fmt::format("stream {} writes what stream {} reads", stream, other));
    }
    uses->writer = stream;
    uses->written_at = now;
  }
}

void Streams::release(const Uses& uses) {
  const std::lock_guard lock(mutex_);
  for (size_t other = 0; other < kStreams; ++other) {
    const uint64_t used = std::max(uses.read_at[other], uses.writer == other ? uses.written_at : 0);
    if (uses.recorded[other] || is_behind(uses.owner, other, used)) continue;
    note(fmt::format("memory of stream {} is freed while stream {} may use it", uses.owner, other));
  }
}

void Streams::put_off(size_t stream, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  late_.push_back({stream, ++clocks_[stream][stream], std::move(work)});
}

Clock Streams::record(size_t stream) {
  const std::lock_guard lock(mutex_);
  return clocks_[stream];
}

void Streams::block(size_t stream, const Clock& event) {
  const std::lock_guard lock(mutex_);
  merge(clocks_[stream], event);
}

void Streams::wait_for(const Clock& event) {
  const std::lock_guard lock(mutex_);
  merge(host_, event);
  std::erase_if(late_, [&](Late& late) {
    if (late.time > event[late.stream]) return false;
    late.work();
    return true;
  });
}

bool Streams::has_waited_for(const Clock& event) {
  const std::lock_guard lock(mutex_);
  return std::ranges::equal(host_, event, std::ranges::greater_equal());
}

std::vector<std::string> Streams::take_races() {
  const std::lock_guard lock(mutex_);
  return std::exchange(races_, {});
}

}  // namespace strait::fake
