#include "strait/transport/emulated_loopback.h"

#include <utility>

namespace strait {

void EmulatedLoopback::send(Tag tag, Buffer message) {
  const Wires& wires = wires_.at(tag.boundary());
  EmulatedWire& wire = tag.direction() == Direction::activation ? *wires.activations : *wires.gradients;
  arrivals_[tag].push_back(wire.send(message.size(), std::chrono::steady_clock::now()));
  loopback_.send(tag, std::move(message));
}

Buffer EmulatedLoopback::receive(Tag tag, size_t bound) {
  Buffer message = loopback_.receive(tag, bound);
  const auto queue = arrivals_.find(tag);
  const auto arrival = queue->second.front();
  queue->second.pop_front();
  if (queue->second.empty()) arrivals_.erase(queue);
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, arrival, [&] { return cancelled_; })) {
    throw Error("the emulated link has been given up");
  }
  return message;
}

void EmulatedLoopback::cancel() {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

}  // namespace strait
