#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

#include "strait/base/link_rate.h"

namespace strait {

/// The time that a process's messages take over an emulated link. The wire carries one message at a time, in
/// the order in which they are handed over, at the link's rate, and a message arrives a latency after its last
/// byte was sent, as in simulate(). An idle wire saves nothing up.
///
/// A message counts as the packets in which TCP sends it over Ethernet, each with its headers, so that the rate
/// is that of the line, as people state rates and `tc tbf` limits them. What encryption adds (0.2%) and the
/// receiver's confirmations are not counted.
class EmulatedWire {
 public:
  /// Of a steady clock.
  using Time = std::chrono::steady_clock::time_point;

  /// Bytes of a message that a packet of Ethernet's usual size carries.
  static constexpr size_t kPacketPayload = 1448;

  /// Bytes of each packet beside them: Ethernet 14, IP 20, TCP with time stamps 32.
  static constexpr size_t kPacketHeaders = 66;

  /// An idle wire.
  explicit EmulatedWire(const LinkRate& link) : link_(link) {}

  /// When a message of `size` bytes arrives that is handed over at `now`. From any thread.
  Time send(size_t size, Time now);

 private:
  LinkRate link_;
  std::mutex mutex_;
  Time free_ = {};  ///< when it has sent what it was given
};

}  // namespace strait
