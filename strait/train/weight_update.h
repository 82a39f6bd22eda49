#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "strait/pipeline/data_parallel.h"
#include "strait/train/gradients.h"
#include "strait/train/placement.h"
#include "strait/train/trainer_options.h"

namespace strait {

/// What a step does around its backward passes: gradients begin at zero; at the end they are added up over the
/// replicas and over ties and clipped, and the optimizer changes the weights at the schedule's rate.
/// Collective.
class WeightUpdate {
 public:
  /// Of the layers of this process's stages. The placement must outlive it.
  WeightUpdate(Placement& placement, const TrainerOptions& options);

  /// Before the step's first batch.
  void begin() { optimizer_->zero_grad(); }

  /// After its last. `step` counts the optimizer's steps before it, `at` is where the schedule stands. Throws
  /// NumericError for gradients that are not finite.
  void finish(uint64_t step, const SchedulePoint& at, bool compressed);

  /// The learning rate of the step that comes next.
  double rate(const SchedulePoint& at) const { return base_rate_ * schedule_(at); }

  /// Makes gradients as a step leaves them, for what comes behind a checkpoint: a gradient is then added to
  /// zero, which makes +0 of -0, where none would be replaced.
  void clear();

  /// The optimizer of these layers.
  Optimizer& optimizer() { return *optimizer_; }

  /// What ties the replicas together.
  DataParallel& data_parallel() { return data_parallel_; }

 private:
  std::vector<at::Tensor> parameters_;
  DataParallel data_parallel_;
  Gradients gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  RateSchedule schedule_;
  double base_rate_;
  double clip_norm_;
};

}  // namespace strait
