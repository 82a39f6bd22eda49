#pragma once

#include <cstdint>

#include "strait/pipeline/options.h"
#include "strait/train/options.h"

namespace strait {

/// What a schedule with steps_per_micro_batch() does not go together with: several batches a step, replicas,
/// and, where it predicts weights, bfloat16, of which a backward pass has the rounded weights of its forward
/// pass. Throws InputError that begins with the key.
void check_micro_batch_steps(const TrainOptions& train, const PipelineOptions& pipeline);

/// How the batches of an epoch make steps of the optimizer.
class StepPlan {
 public:
  /// An epoch of `samples` in batches of `batch_size`, which `replicas` share, `accumulate` batches a step. The
  /// last step has what is left.
  StepPlan(int64_t samples, int64_t batch_size, int replicas, int accumulate);

  /// As the options say; with a schedule that steps_per_micro_batch() every micro-batch is a step.
  StepPlan(int64_t samples, int64_t batch_size, const TrainOptions& train, const PipelineOptions& pipeline);

  /// A batch as part of a step.
  struct Part {
    int64_t first_row = 0;  ///< of the replica's share of the batch, among the rows of the step
    int64_t all_rows = 0;   ///< of the step
    bool begins = true;     ///< the step
    bool ends = true;       ///< the step
    int64_t steps = 1;      ///< of the optimizer that end with the batch
  };

  /// The batch of that number, from 0, as the replica sees it.
  Part part(int64_t batch, int replica) const;

  /// Batches of the epoch.
  int64_t batches() const { return batches_of(trained_); }

  /// Steps of the epoch.
  int64_t steps() const { return steps_of(batches()); }

  /// Steps that so many batches make, the last perhaps unfinished.
  int64_t steps_of(int64_t batches) const;

  /// Samples of a full step.
  int64_t samples_of_step() const { return step_rows_ > 0 ? step_rows_ : batch_size_ * accumulate_; }

  /// Whether so many batches are the whole epoch.
  bool is_done(int64_t batches) const { return batches * batch_size_ >= trained_; }

 private:
  int64_t batches_of(int64_t samples) const { return (samples + batch_size_ - 1) / batch_size_; }

  int64_t trained_;  ///< samples: those that every replica gets some of
  int64_t batch_size_;
  int replicas_;
  int accumulate_;
  int64_t step_rows_ = 0;  ///< where a batch makes several steps, the rows of each but its last
};

}  // namespace strait
