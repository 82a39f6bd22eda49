#pragma once

#include <deque>
#include <vector>

#include "strait/base/workers.h"
#include "strait/pipeline/exchange.h"

namespace strait {

/// Encodes in one thread and decodes in another, beside the stages' computations. Does what Exchange does, in
/// the same order on every channel, and so gives the same bits.
class OverlappedExchange : public Exchange {
 public:
  /// Starts both threads. `trace` may be null. Boundaries and transport must outlive it.
  OverlappedExchange(std::vector<BoundaryEndpoints>& boundaries, Transport& transport, Trace* trace);

  void begin(std::vector<MessageSlot> expected) override;
  void send(const MessageSlot& message, at::Tensor tensor) override;
  at::Tensor receive(const MessageSlot& message) override;
  void finish() override;
  void cancel() override;

 private:
  /// A message that the receiving thread has been asked for.
  struct Arrival {
    size_t task = 0;    ///< the thread's, that receives it
    at::Tensor tensor;  ///< once that is done
  };
  void receive_ahead();
  void announce(size_t count);

  std::vector<MessageSlot> expected_;  ///< of the step; the same while messages are under way
  size_t announced_ = 0;               ///< of these, what the transport expects already; the receiving thread's
  size_t taken_ = 0;                   ///< of these, what receive() has given
  std::deque<Arrival> arrivals_;       ///< what it gives next
  Workers threads_;
};

}  // namespace strait
