#include "strait/pipeline/overlapped_exchange.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <utility>

namespace strait {
namespace {

constexpr size_t kSendingThread = 0;
constexpr size_t kReceivingThread = 1;

/// Messages decoded before they are asked for, and messages that may come in beside the one that is awaited:
/// enough that neither the wire nor the decoder waits, few enough to keep little in memory.
constexpr size_t kReadyLimit = 2;
constexpr size_t kExpectedLimit = 4;

}  // namespace

OverlappedExchange::OverlappedExchange(std::vector<BoundaryEndpoints>& boundaries, Transport& transport,
                                       Trace* trace, c10::Device device)
    : Exchange(boundaries, transport, trace),
      device_(device),
      streams_({OwnStream(device), OwnStream(device)}),
      finished_(2),
      threads_(2) {
  for (const size_t thread : {kSendingThread, kReceivingThread}) {
    threads_.post(thread, [device] {
      set_current_device(device);
#ifdef _OPENMP
      omp_set_num_threads(1);  // of this thread: the others belong to the stages
#endif
    });
  }
}

void OverlappedExchange::begin(std::vector<MessageSlot> expected) {
  STRAIT_CHECK(taken_ == expected_.size(), "the step before has messages left");
  expected_ = std::move(expected);
  announced_ = 0;
  taken_ = 0;
  begun_ = DevicePoint::here(device_);
  for (size_t i = 0; i < kReadyLimit; ++i) receive_ahead();
}

void OverlappedExchange::send(const MessageSlot& message, at::Tensor tensor) {
  threads_.check();
  post(kSendingThread, DevicePoint::here(device_), [this, message, tensor = std::move(tensor)]() mutable {
    keep_for_current_stream(tensor);
    Exchange::send(message, std::move(tensor));
  });
}

/// Has the thread do this on its stream.
size_t OverlappedExchange::post(size_t thread, const DevicePoint& after, std::function<void()> work) {
  return threads_.post(thread, [this, thread, after, work = std::move(work)] {
    finished_[thread] = streams_[thread].run(after, work);
  });
}

/// Asks for one message more.
void OverlappedExchange::receive_ahead() {
  const size_t next = taken_ + arrivals_.size();
  if (next == expected_.size()) return;
  Arrival& arrival = arrivals_.emplace_back();
  arrival.task = post(kReceivingThread, begun_, [this, next, &arrival] {
    announce(std::min(expected_.size(), next + kExpectedLimit));
    arrival.tensor = Exchange::receive(expected_[next]);
    arrival.made = DevicePoint::here(device_);
  });
}

/// Lets the transport expect the first `count` messages of the step.
void OverlappedExchange::announce(size_t count) {
  for (; announced_ < count; ++announced_) {
    const MessageSlot& message = expected_[announced_];
    transport().expect(message.tag(), channel_of(message).receiver->frame_bound(message.meta));
  }
}

at::Tensor OverlappedExchange::receive(const MessageSlot& message) {
  const TraceSpan span(trace(), Lane::wait, to_string(message.direction), message.boundary,
                       static_cast<int>(message.context.micro_batch));
  STRAIT_CHECK(!arrivals_.empty(), "a message that the step does not expect");
  threads_.wait_for(kReceivingThread, arrivals_.front().task);
  at::Tensor received = std::move(arrivals_.front().tensor);
  arrivals_.front().made.wait();
  keep_for_current_stream(received);
  arrivals_.pop_front();
  ++taken_;
  receive_ahead();
  return received;
}

void OverlappedExchange::finish() {
  threads_.wait();
  for (const DevicePoint& point : finished_) point.wait();
}

void OverlappedExchange::cancel() {
  threads_.stop();
  transport().cancel();
  threads_.wait_for_begun();  // they read what the caller frees
}

}  // namespace strait
