#include "strait/transport/c10d/waits.h"

#include <algorithm>

namespace strait {

Waits::Guard::Guard(Waits& waits, c10d::Work& work) : waits_(waits), work_(work) {
  const std::scoped_lock lock(waits_.mutex_);
  waits_.works_.push_back(&work_);
  if (waits_.ended_) work_.abort();
}

Waits::Guard::~Guard() {
  const std::scoped_lock lock(waits_.mutex_);
  waits_.works_.erase(std::ranges::find(waits_.works_, &work_));
}

void Waits::end(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return;
  ended_ = reason;
  for (c10d::Work* work : works_) work->abort();
}

std::optional<std::string> Waits::ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_;
}

bool Waits::any() const {
  const std::scoped_lock lock(mutex_);
  return !works_.empty();
}

}  // namespace strait
