#pragma once

#include <cstdint>
#include <string>

#include "strait/run/metrics.h"

namespace strait {

/// Hears of progress while it happens, in the thread that trains.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  /// After each batch. `phase` is "train" or "test"; `done` of `total` samples of the pass. The loss is not a
  /// number on a process without the last stage.
  virtual void on_batch(int /*epoch*/, const char* /*phase*/, int64_t /*done*/, int64_t /*total*/,
                        double /*mean_loss*/) {}

  /// After each epoch and its evaluation.
  virtual void on_epoch(const EpochMetrics& /*metrics*/) {}

  /// After every train.log_every steps.
  virtual void on_steps(const StepMetrics& /*metrics*/) {}

  /// After an evaluation within an epoch.
  virtual void on_evaluation(const StepEvaluation& /*evaluation*/) {}

  /// A line about the run that is worth reading: how it begins, what it will need.
  virtual void on_note(const std::string& /*line*/) {}

  /// Asked before each batch; true ends the run after the optimizer's step that the batch is part of. With
  /// several processes any may say so, and all end after the same step, soon after (StopAgreement).
  virtual bool should_stop() { return false; }
};

}  // namespace strait
