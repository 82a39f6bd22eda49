#include "strait/pipeline/overlapped_exchange.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <utility>

namespace strait {
namespace {

/// Messages decoded before they are asked for, and messages that may come in beside the one that is awaited:
/// enough that neither the wire nor the decoder waits, few enough to keep little in memory.
constexpr size_t kReadyLimit = 2;
constexpr size_t kExpectedLimit = 4;

}  // namespace

OverlappedExchange::OverlappedExchange(std::vector<BoundaryEndpoints>& boundaries, Transport& transport,
                                       Trace* trace)
    : Exchange(boundaries, transport, trace),
      sender_([this] { guard([this] { send_all(); }); }),
      receiver_([this] { guard([this] { receive_all(); }); }) {}

OverlappedExchange::~OverlappedExchange() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  sender_.join();
  receiver_.join();
}

/// Runs a thread's loop and keeps its error for the computing thread.
void OverlappedExchange::guard(const std::function<void()>& loop) {
#ifdef _OPENMP
  omp_set_num_threads(1);  // of this thread: the others belong to the stages
#endif
  try {
    loop();
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::current_exception();
    changed_.notify_all();
  }
}

void OverlappedExchange::send_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !departures_.empty(); });
    if (stopped_) return;
    Departure next = std::move(departures_.front());
    departures_.pop_front();
    sending_ = true;
    lock.unlock();
    Exchange::send(next.message, std::move(next.tensor));
    lock.lock();
    sending_ = false;
    changed_.notify_all();
  }
}

void OverlappedExchange::receive_all() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || (!expected_.empty() && ready_.size() < kReadyLimit); });
    if (stopped_) return;
    announce();
    const MessageSlot next = std::move(expected_.front());
    expected_.pop_front();
    announced_ -= 1;
    receiving_ = true;
    lock.unlock();
    at::Tensor received = Exchange::receive(next);
    lock.lock();
    ready_.push_back(std::move(received));
    receiving_ = false;
    changed_.notify_all();
  }
}

void OverlappedExchange::announce() {
  for (; announced_ < std::min(expected_.size(), kExpectedLimit); ++announced_) {
    const MessageSlot& message = expected_[announced_];
    transport().expect(message.tag(), channel_of(message).receiver->frame_bound(message.meta));
  }
}

void OverlappedExchange::begin(std::vector<MessageSlot> expected) {
  const std::scoped_lock lock(mutex_);
  STRAIT_CHECK(expected_.empty() && ready_.empty(), "the step before has messages left");
  expected_.assign(std::make_move_iterator(expected.begin()), std::make_move_iterator(expected.end()));
  changed_.notify_all();
}

void OverlappedExchange::send(const MessageSlot& message, at::Tensor tensor) {
  const std::scoped_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  departures_.push_back({message, std::move(tensor)});
  changed_.notify_all();
}

at::Tensor OverlappedExchange::receive(const MessageSlot& message) {
  const TraceSpan span(trace(), Lane::wait, to_string(message.direction), message.boundary,
                       static_cast<int>(message.context.micro_batch));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || !ready_.empty(); });
  if (ready_.empty()) std::rethrow_exception(error_);
  at::Tensor received = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return received;
}

void OverlappedExchange::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return error_ || (departures_.empty() && !sending_ && expected_.empty() && !receiving_); });
  if (error_) std::rethrow_exception(error_);
}

void OverlappedExchange::cancel() {
  {
    const std::scoped_lock lock(mutex_);
    departures_.clear();
    stopped_ = true;
  }
  changed_.notify_all();
  transport().cancel();
}

}  // namespace strait
