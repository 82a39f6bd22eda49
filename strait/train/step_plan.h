#pragma once

#include <cstdint>

namespace strait {

/// How the batches of an epoch make steps of the optimizer.
class StepPlan {
 public:
  /// An epoch of `samples` in batches of `batch_size`, which `replicas` share, `accumulate` batches a step. The
  /// last step has what is left.
  StepPlan(int64_t samples, int64_t batch_size, int replicas, int accumulate);

  /// A batch as part of a step.
  struct Part {
    int64_t first_row = 0;  ///< of the replica's share of the batch, among the rows of the step
    int64_t all_rows = 0;   ///< of the step
    bool begins = true;     ///< the step
    bool ends = true;       ///< the step
  };

  /// The batch of that number, from 0, as the replica sees it.
  Part part(int64_t batch, int replica) const;

  /// Steps of the epoch.
  int64_t steps() const { return steps_of(batches_of(trained_)); }

  /// Steps that so many batches make, the last perhaps unfinished.
  int64_t steps_of(int64_t batches) const { return (batches + accumulate_ - 1) / accumulate_; }

  /// Whether so many batches are the whole epoch.
  bool is_done(int64_t batches) const { return batches * batch_size_ >= trained_; }

 private:
  int64_t batches_of(int64_t samples) const { return (samples + batch_size_ - 1) / batch_size_; }

  int64_t trained_;  ///< samples: those that every replica gets some of
  int64_t batch_size_;
  int replicas_;
  int accumulate_;
};

}  // namespace strait
