#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "strait/transport/transport.h"

namespace strait {

/// Messages that are being sent, in their order. A thread sees them off one by one, and frees those that have
/// gone. `Message` has a Tag `tag`.
template <class Message>
class SendQueue {
 public:
  /// Messages of one direction of one boundary that may wait to go; then the sender waits. Without a bound a
  /// stage that never waits for its peers, as in evaluation, would fill the memory.
  static constexpr size_t kUnderWayLimit = 16;

  /// `see_off` is called in the thread, and returns once the message has gone. Where it throws, no other
  /// message goes.
  explicit SendQueue(std::function<void(Message& message)> see_off)
      : see_off_(std::move(see_off)), thread_([this] { work(); }) {}

  ~SendQueue() { finish(); }  ///< as finish() does
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  /// Waits until all have gone or one cannot. Nothing is added from now on.
  void finish() {
    {
      const std::scoped_lock lock(mutex_);
      finished_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  /// Adds a message.
  void push(Message message) {
    const std::scoped_lock lock(mutex_);
    messages_.push_back(std::move(message));
    changed_.notify_all();
  }

  /// From any thread: lets the members below throw that error, unless they throw another one already.
  void fail(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  // These throw what the first message threw that could not go, then and ever after.

  /// Waits until few messages of the tag's channel are under way.
  void wait_for_room(Tag tag) {
    const auto same_channel = [&](const Message& other) { return other.tag.is_same_channel(tag); };
    wait([&] { return static_cast<size_t>(std::ranges::count_if(messages_, same_channel)) < kUnderWayLimit; });
  }

  /// Waits until all have gone.
  void drain() {
    wait([&] { return messages_.empty(); });
  }

  /// Waits for nothing.
  void check() {
    wait([] { return true; });
  }

  /// Waits until that time.
  void wait_until(std::chrono::steady_clock::time_point time) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, time, [&] { return error_ != nullptr; })) std::rethrow_exception(error_);
  }

 private:
  template <class Ready>
  void wait(const Ready& ready) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || ready(); });
    if (error_) std::rethrow_exception(error_);
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return error_ || finished_ || !messages_.empty(); });
      if (error_ || messages_.empty()) return;
      Message& first = messages_.front();  // stays in place while others are added behind it
      lock.unlock();
      std::exception_ptr error;
      try {
        see_off_(first);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (!error_) error_ = error;
      if (!error) messages_.pop_front();
      changed_.notify_all();
    }
  }

  std::function<void(Message& message)> see_off_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> messages_;
  std::exception_ptr error_;  ///< the first
  bool finished_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace strait
