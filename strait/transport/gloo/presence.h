#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace strait {

/// How many are there, as one thread says and another waits for.
class Presence {
 public:
  /// So many are there now.
  void set(size_t count) {
    const std::scoped_lock lock(mutex_);
    count_ = count;
    changed_.notify_all();
  }

  /// Waits until there are at most so many, or for the limit.
  void wait_for_at_most(size_t count, std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return count_ <= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t count_ = 0;
};

}  // namespace strait
