#include "strait/transport/c10d/send_queue.h"

#include <algorithm>

namespace strait {
namespace {

/// Messages of one direction of one boundary that may wait to go; then the sender waits. Without a bound a
/// stage that never waits for its peers, as in evaluation, would fill the memory.
constexpr size_t kUnderWayLimit = 16;

}  // namespace

SendQueue::SendQueue(std::shared_ptr<Connections> connections, Waits& waits)
    : connections_(std::move(connections)), waits_(waits), thread_([this] { free_sent(); }) {}

SendQueue::~SendQueue() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SendQueue::wait_for_room(Tag tag) {
  const auto same_channel = [&](const MessageUnderWay& other) { return other.tag.is_same_channel(tag); };
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return error_ || static_cast<size_t>(std::ranges::count_if(messages_, same_channel)) < kUnderWayLimit;
  });
  if (error_) std::rethrow_exception(error_);
}

void SendQueue::push(MessageUnderWay message) {
  const std::scoped_lock lock(mutex_);
  messages_.push_back(std::move(message));
  changed_.notify_all();
}

void SendQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || messages_.empty(); });
  if (error_) std::rethrow_exception(error_);
}

void SendQueue::check() {
  const std::scoped_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void SendQueue::fail(std::exception_ptr error) {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void SendQueue::free_sent() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !messages_.empty(); });
    if (messages_.empty() || error_) return;
    const MessageUnderWay& first = messages_.front();  // stays in place while others are added behind it
    lock.unlock();
    std::exception_ptr error;
    try {
      const Waits::Guard guard(waits_, *first.work);
      connections_->wait(first.where, first.peer, *first.work);
    } catch (const Error&) {
      error = std::current_exception();
    }
    lock.lock();
    if (!error_) error_ = error;
    if (!error) messages_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace strait
