#include "strait/transport/loopback.h"

#include <utility>

namespace strait {

void Loopback::send(Tag tag, Buffer message) { queues_[tag].push_back(std::move(message)); }

Buffer Loopback::receive(Tag tag, size_t bound) {
  const auto queue = queues_.find(tag);
  if (queue == queues_.end()) throw WireError("no message with tag {} was sent", tag.value());
  if (queue->second.front().size() > bound) {
    throw WireError("message of {} bytes where at most {} were expected", queue->second.front().size(), bound);
  }
  Buffer message = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) queues_.erase(queue);
  return message;
}

size_t Loopback::pending() const {
  size_t count = 0;
  for (const auto& [tag, queue] : queues_) count += queue.size();
  return count;
}

}  // namespace strait
