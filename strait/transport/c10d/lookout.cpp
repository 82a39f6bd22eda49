#include "strait/transport/c10d/lookout.h"

#include <condition_variable>
#include <mutex>

namespace strait {
namespace {

constexpr std::chrono::milliseconds kPatienceWithLook(1000);

}  // namespace

/// What the thread waits at between two looks.
class Lookout::Bell {
 public:
  /// Gives whether another look is wanted.
  bool wait(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return rung_ || stopped_; });
    rung_ = false;
    return !stopped_;
  }

  void ring() {
    const std::scoped_lock lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }

  void leave() {
    const std::scoped_lock lock(mutex_);
    left_ = true;
    changed_.notify_all();
  }

  /// Gives whether the thread has left within the limit.
  bool stop(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
    return changed_.wait_for(lock, limit, [&] { return left_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
  bool stopped_ = false;
  bool left_ = false;
};

Lookout::Lookout(Look look)
    : bell_(std::make_shared<Bell>()), thread_([bell = bell_, look = std::move(look)] {
        for (auto pause = look(); pause && bell->wait(*pause); pause = look()) {
        }
        bell->leave();
      }) {}

Lookout::~Lookout() {
  if (bell_->stop(kPatienceWithLook)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Lookout::wake() { bell_->ring(); }

}  // namespace strait
