#include "strait/transport/emulated_link.h"

#include <algorithm>
#include <utility>

namespace strait {
namespace {

constexpr size_t kMessagesUnderWay = 16;  ///< of a boundary and direction

}  // namespace

EmulatedLink::EmulatedLink(std::unique_ptr<Transport> transport, std::shared_ptr<EmulatedWire> wire,
                           const std::stop_token& end)
    : transport_(std::move(transport)),
      wire_(std::move(wire)),
      thread_([this] { deliver(); }),
      on_end_(end,
              [this] { fail(std::make_exception_ptr(Error("the emulated link: this rank has given up"))); }) {}

EmulatedLink::~EmulatedLink() {
  {
    const std::scoped_lock lock(mutex_);
    leaves_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EmulatedLink::send(Tag tag, Buffer message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || has_room(tag); });
  check();
  const auto arrival = wire_->send(message.size(), std::chrono::steady_clock::now());
  messages_.push_back({tag, std::move(message), arrival});
  changed_.notify_all();
}

Buffer EmulatedLink::receive(Tag tag, size_t bound) {
  {
    const std::scoped_lock lock(mutex_);
    check();
  }
  return transport_->receive(tag, bound);
}

void EmulatedLink::drain() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || messages_.empty(); });
    check();
  }
  transport_->drain();
}

void EmulatedLink::cancel() {
  fail(std::make_exception_ptr(Error("the emulated link has been given up")));
  transport_->cancel();
}

bool EmulatedLink::has_room(Tag tag) const {
  const auto same_channel = [&](const Message& other) { return other.tag.is_same_channel(tag); };
  return static_cast<size_t>(std::ranges::count_if(messages_, same_channel)) < kMessagesUnderWay;
}

void EmulatedLink::fail(std::exception_ptr error) {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void EmulatedLink::check() const {
  if (error_) std::rethrow_exception(error_);
}

void EmulatedLink::deliver() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return error_ || leaves_ || !messages_.empty(); });
    if (error_ || messages_.empty()) return;
    Message& first = messages_.front();  // stays in place while others are added behind it
    if (changed_.wait_until(lock, first.arrival, [&] { return error_ != nullptr; })) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      transport_->send(first.tag, std::move(first.buffer));
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (!error_) error_ = error;
    if (!error) messages_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace strait
