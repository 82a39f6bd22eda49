#include "strait/train/step_plan.h"

#include <algorithm>

#include "strait/data/batch_parts.h"

namespace strait {

StepPlan::StepPlan(int64_t samples, int64_t batch_size, int replicas, int accumulate)
    : trained_(trained_samples(samples, batch_size, replicas)),
      batch_size_(batch_size),
      replicas_(replicas),
      accumulate_(accumulate) {}

StepPlan::Part StepPlan::part(int64_t batch, int replica) const {
  const int64_t first = batch - batch % accumulate_;
  const int64_t end = std::min((first + accumulate_) * batch_size_, trained_);
  const int64_t rows = std::min(batch_size_, trained_ - batch * batch_size_);
  return {.first_row = (batch - first) * batch_size_ + part_of_batch(rows, replica, replicas_).first_row,
          .all_rows = end - first * batch_size_,
          .begins = batch == first,
          .ends = batch * batch_size_ + rows == end};
}

}  // namespace strait
