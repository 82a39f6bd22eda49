#pragma once

#include <deque>
#include <vector>

#include "strait/base/workers.h"
#include "strait/codecs/device_order.h"
#include "strait/pipeline/exchange.h"

namespace strait {

/// Encodes in one thread and decodes in another, beside the stages' computations; on a device each on a stream
/// of its own. Does what Exchange does, in the same order on every channel, and so gives the same bits. What
/// the boundaries keep on a device may be read and replaced between finish() and begin().
class OverlappedExchange : public Exchange {
 public:
  /// Starts both threads. `device` is the stages'; `trace` may be null. Boundaries and transport must outlive
  /// it.
  OverlappedExchange(std::vector<BoundaryEndpoints>& boundaries, Transport& transport, Trace* trace,
                     c10::Device device);

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
    DevicePoint made;   ///< behind the operations that make it
  };
  size_t post(size_t thread, const DevicePoint& after, std::function<void()> work);
  void receive_ahead();
  void announce(size_t count);

  std::vector<MessageSlot> expected_;  ///< of the step; the same while messages are under way
  size_t announced_ = 0;               ///< of these, what the transport expects already; the receiving thread's
  size_t taken_ = 0;                   ///< of these, what receive() has given
  std::deque<Arrival> arrivals_;       ///< what it gives next
  c10::Device device_;
  DevicePoint begun_;                  ///< behind what came before the step
  std::vector<OwnStream> streams_;     ///< of the threads
  std::vector<DevicePoint> finished_;  ///< behind the last task of each
  Workers threads_;                    // last: its threads use the others
};

}  // namespace strait
