#include "strait/transport/c10d/control_outbox.h"

#include <utility>

namespace strait {

void ControlOutbox::put(const std::vector<int>& peers, const ControlMessage& message, bool confirmed) {
  const std::scoped_lock lock(mutex_);
  for (const int peer : peers) letters_.push_back({peer, message, confirmed});
  if (confirmed) unheard_.insert(unheard_.end(), peers.begin(), peers.end());
}

ControlOutbox::Missing ControlOutbox::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return unheard_.empty() || !failure_.empty(); });
  return {std::exchange(unheard_, {}), failure_};
}

std::vector<ControlLetter> ControlOutbox::take() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(letters_, {});
}

void ControlOutbox::confirm(int rank) {
  const std::scoped_lock lock(mutex_);
  std::erase(unheard_, rank);
  changed_.notify_all();
}

void ControlOutbox::fail(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  failure_ = reason;
  changed_.notify_all();
}

bool ControlOutbox::is_awaited() const {
  const std::scoped_lock lock(mutex_);
  return !unheard_.empty();
}

}  // namespace strait
