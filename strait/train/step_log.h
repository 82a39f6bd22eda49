#pragma once

#include <cstdint>

#include "strait/checkpoint/training_state.h"
#include "strait/run/metrics.h"
#include "strait/train/placement.h"
#include "strait/train/trainer_options.h"

namespace strait {

/// Sums up what happened from one multiple of train.log_every steps to the next, also over the end of an epoch.
/// Changes nothing that is trained. After a resume the first line has the steps since then.
class StepLog {
 public:
  /// Both must outlive it.
  StepLog(Placement& placement, const TrainerOptions& options) : placement_(placement), options_(options) {}

  /// Whether a line is due after a batch that ended so many steps.
  bool is_due(const TrainingState& state, uint64_t steps) const;

  /// Counts from here on; of an epoch that begins, or that is resumed. `state` has all measurements of this
  /// process.
  void begin(const TrainingState& state) { seen_ = sums_of(state); }

  /// Keeps what the epoch had behind its last line for the first line of the next.
  void end_epoch(const TrainingState& state);

  /// The line of all processes, which call it together; `lr` is the last step's.
  StepMetrics take(const TrainingState& state, double lr);

 private:
  /// Of this process, or of all.
  struct Sums {
    StepResult train;
    double steps = 0;  ///< of the optimizer, of the whole training where it is no difference
    double raw_bytes = 0;
    double wire_bytes = 0;
    double busy_seconds = 0;  ///< of its stages
    double seconds = 0;

    Sums operator-(const Sums& earlier) const;
    Sums& operator+=(const Sums& part);
  };
  Sums sums_of(const TrainingState& state) const;
  Sums gathered(const Sums& mine) const;

  Placement& placement_;
  const TrainerOptions& options_;
  Sums seen_;    ///< of the epoch, in lines already
  Sums behind_;  ///< of epochs before, in no line yet
};

}  // namespace strait
