#pragma once

#include <deque>
#include <map>

#include "strait/transport/transport.h"

namespace strait {

/// Carries messages between stages of one process that take turns in one thread. A message that was not
/// sent before it is asked for never comes, so receive() throws at once.
class Loopback : public Transport {
 public:
  void send(Tag tag, Buffer message) override;
  Buffer receive(Tag tag, size_t bound) override;
  FrameCheck frame_check() const override { return FrameCheck::trust; }

  /// Messages sent and not received yet.
  size_t pending() const;

 private:
  std::map<Tag, std::deque<Buffer>> queues_;
};

}  // namespace strait
