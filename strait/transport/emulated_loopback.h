#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strait/transport/emulated_wire.h"
#include "strait/transport/loopback.h"

namespace strait {

/// Loopback, as if the stages were in processes of their own and sent over emulated links. A message that was
/// sent and has not arrived yet is waited for, and then no stage computes, because all take turns in one
/// thread.
class EmulatedLoopback : public Transport {
 public:
  /// Over which wires the stages at a boundary send.
  struct Wires {
    std::shared_ptr<EmulatedWire> activations;  ///< of the stage before it
    std::shared_ptr<EmulatedWire> gradients;    ///< of the stage behind it
  };

  /// `wires`: of each boundary. Boundaries may share some.
  explicit EmulatedLoopback(std::vector<Wires> wires) : wires_(std::move(wires)) {}

  void send(Tag tag, Buffer message) override;
  Buffer receive(Tag tag, size_t bound) override;
  void cancel() override;
  FrameCheck frame_check() const override { return loopback_.frame_check(); }

 private:
  std::vector<Wires> wires_;
  Loopback loopback_;
  std::map<Tag, std::deque<EmulatedWire::Time>> arrivals_;  ///< of what lies there
  std::mutex mutex_;
  std::condition_variable changed_;
  bool cancelled_ = false;
};

}  // namespace strait
