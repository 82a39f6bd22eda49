#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "strait/pipeline/exchange.h"

namespace strait {

/// Encodes in one thread and decodes in another, beside the stages' computations. Does what Exchange does, in
/// the same order on every channel, and so gives the same bits.
class OverlappedExchange : public Exchange {
 public:
  /// Starts both threads. `trace` may be null. Boundaries and transport must outlive it.
  OverlappedExchange(std::vector<BoundaryEndpoints>& boundaries, Transport& transport, Trace* trace);
  ~OverlappedExchange() override;

  void begin(std::vector<MessageSlot> expected) override;
  void send(const MessageSlot& message, at::Tensor tensor) override;
  at::Tensor receive(const MessageSlot& message) override;
  void finish() override;
  void cancel() override;

 private:
  struct Departure {
    MessageSlot message;
    at::Tensor tensor;
  };
  void send_all();
  void receive_all();
  void announce();
  void guard(const std::function<void()>& loop);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::exception_ptr error_;
  std::deque<Departure> departures_;
  bool sending_ = false;              ///< one has been taken from departures_ and is not sent yet
  std::deque<MessageSlot> expected_;  ///< of the step, not received yet
  size_t announced_ = 0;              ///< of these, what the transport expects already
  bool receiving_ = false;
  std::deque<at::Tensor> ready_;
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace strait
