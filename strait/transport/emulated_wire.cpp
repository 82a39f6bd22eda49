#include "strait/transport/emulated_wire.h"

#include <algorithm>

namespace strait {
namespace {

/// Three years: what takes longer than this takes this long, for the clock to hold it.
constexpr double kLongestDelay = 1e8;

std::chrono::nanoseconds delay_of(double seconds) {
  return std::chrono::ceil<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(seconds, kLongestDelay)));
}

}  // namespace

EmulatedWire::Time EmulatedWire::send(size_t size, Time now) {
  const size_t packets = (size + kPacketPayload - 1) / kPacketPayload;
  const auto bytes = static_cast<double>(size + packets * kPacketHeaders);
  const std::scoped_lock lock(mutex_);
  free_ = std::max(free_, now) + delay_of(bytes / link_.bytes_per_second);
  return free_ + delay_of(link_.latency_seconds);
}

}  // namespace strait
