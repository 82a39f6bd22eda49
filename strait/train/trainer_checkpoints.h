#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strait/checkpoint/checkpoint.h"
#include "strait/checkpoint/checkpoint_copies.h"
#include "strait/checkpoint/training_state.h"
#include "strait/train/placed_executor.h"
#include "strait/train/weight_update.h"

namespace strait {

/// What of a training is saved, and how it comes back: weights, the optimizer's state, feedback state and
/// random state, beside the position.
class TrainerCheckpoints {
 public:
  /// All of them must outlive it.
  TrainerCheckpoints(Placement& placement, Executor& executor, WeightUpdate& update, uint64_t seed)
      : placement_(placement), executor_(executor), update_(update), seed_(seed) {}

  /// From now on write() leaves checkpoints there, this process's part of them. `config` is the run's
  /// configuration and `data` the fingerprint() of its data, for their record.
  void keep(CheckpointWriter writer, std::string config, std::string data);

  /// Where they are kept and when they are due; null where none are.
  const CheckpointFolder* folder() const { return writer_ ? &writer_->own() : nullptr; }

  /// Leaves a checkpoint; `metrics` has the lines of metrics.jsonl so far. Collective. Throws Error.
  void write(const TrainingState& state, const std::vector<std::string>& metrics);

  /// Takes over everything but the position and the lines. `may_lack_state`: no message was compressed yet.
  /// Throws InputError when it does not fit.
  void resume(const Checkpoint& from, bool may_lack_state);

  /// Takes over the weights and, if wanted, the optimizer's state, but no feedback state; see
  /// Trainer::warm_start().
  void warm_start(const Checkpoint& from, bool with_optimizer);

  /// Takes over nothing but the state that evaluation in the modes frozen and live reads. Throws InputError
  /// where the checkpoint has none, and when its weights are not those that are here.
  void take_evaluation_state(const Checkpoint& from);

 private:
  StateVisit optimizer_state();
  StateVisit replicas_state();

  Placement& placement_;
  Executor& executor_;
  WeightUpdate& update_;
  uint64_t seed_;
  std::optional<CheckpointWriter> writer_;
  std::string config_;
  std::string data_;
};

}  // namespace strait
