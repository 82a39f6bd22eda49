#pragma once

#include <cstdint>
#include <functional>

namespace strait {

/// What a control message says.
enum class ControlKind : uint32_t {
  stop_request = 1,  ///< the sender wants all to stop
  last_step,         ///< all stop after the step of that number
};

/// What one process tells another beside the data.
struct ControlMessage {
  ControlKind kind = ControlKind::stop_request;  ///< what it says
  uint64_t number = 0;                           ///< of a step
};

/// Called with a message in a thread of the channel, one message at a time. Must not throw, nor use the
/// channel.
using ControlHandler = std::function<void(const ControlMessage& message)>;

/// Small and rare messages between processes, on connections other than the data's. A thread of the channel
/// hands over what comes, so that the thread that trains need not look for it. Messages of one sender come in
/// their order.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  /// Sends to every peer. Does not wait, and does not throw: whether the peer is there shows with the data.
  virtual void post(const ControlMessage& message) = 0;

  /// Sends to every peer and waits until each one's handler has returned. Throws as the members of Group do.
  virtual void deliver(const ControlMessage& message) = 0;
};

}  // namespace strait
