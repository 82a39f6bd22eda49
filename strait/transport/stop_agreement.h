#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "strait/transport/group.h"

namespace strait {

/// Lets all processes of a group stop after the same step, whichever of them is asked to:
///
///     StopAgreement stop(*group);
///     for (const auto& batch : loader) {
///       stop.begin_step(signal_came);
///       train(batch);
///       if (stop.is_last_step()) break;
///     }
///
/// Any rank may ask. The first one decides, at the beginning of a step: this one is the last. It tells the
/// others, and takes part in the step only when all have heard, which needs no answer of the threads that
/// train. No other rank can finish the step without it (its activations, or the sum of gradients with it), so
/// that each knows in time. Nothing crosses while nobody wants to stop.
class StopAgreement {
 public:
  /// Collective; an agreement is good for one loop. The group must outlive it.
  explicit StopAgreement(Group& group);

  /// Begins a step: every rank calls this before it sends anything of the step. `wanted`: this process is to
  /// stop; it need not say so again. Throws what ControlChannel::deliver() does, on the first rank.
  void begin_step(bool wanted);

  /// At the end of a step: whether that one, or one before it, is the last. The same on all ranks, where none
  /// can get here without the first one's part in the step. Who trains in larger units, such as the batches of
  /// a step of the optimizer, asks at the end of these and not before.
  bool is_last_step() const { return last_ <= step_; }

 private:
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  void take(const ControlMessage& message);

  bool decides_;
  bool asked_ = false;                       ///< this process, already
  uint64_t step_ = 0;                        ///< begun so far
  std::atomic<bool> requested_ = false;      ///< by any rank, where decides_
  std::atomic<uint64_t> last_ = kNone;       ///< number of the last step
  std::unique_ptr<ControlChannel> channel_;  // last: its thread calls take()
};

}  // namespace strait
