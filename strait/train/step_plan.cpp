#include "strait/train/step_plan.h"

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/data/batch_parts.h"
#include "strait/pipeline/schedules.h"

namespace strait {
namespace {

int64_t ceil_of(int64_t count, int64_t each) { return (count + each - 1) / each; }

}  // namespace

void check_micro_batch_steps(const TrainOptions& train, const PipelineOptions& pipeline) {
  const WeightVersions versions = weight_versions(pipeline.schedule);
  if (!steps_per_micro_batch(versions)) return;
  for (const auto& [key, found] :
       {std::pair{"train.accumulate", train.accumulate}, {"pipeline.replicas", pipeline.replicas}}) {
    if (found == 1) continue;
    throw InputError("{}: expected 1 with schedule \"{}\", which steps after every micro-batch, found {}", key,
                     pipeline.schedule, found);
  }
  if (versions == WeightVersions::predicted && train.precision != "fp32") {
    throw InputError(
        "train.precision: expected \"fp32\" with schedule \"{}\", whose backward pass reads other weights "
        "than its forward pass, found \"{}\"",
        pipeline.schedule, train.precision);
  }
}

StepPlan::StepPlan(int64_t samples, int64_t batch_size, int replicas, int accumulate)
    : trained_(trained_samples(samples, batch_size, replicas)),
      batch_size_(batch_size),
      replicas_(replicas),
      accumulate_(accumulate) {}

StepPlan::StepPlan(int64_t samples, int64_t batch_size, const TrainOptions& train,
                   const PipelineOptions& pipeline)
    : StepPlan(samples, batch_size, pipeline.replicas, train.accumulate) {
  if (!steps_per_micro_batch(weight_versions(pipeline.schedule))) return;
  step_rows_ = ceil_of(batch_size, pipeline.micro_batches);
}

int64_t StepPlan::steps_of(int64_t batches) const {
  if (step_rows_ == 0) return ceil_of(batches, accumulate_);
  const int64_t whole = std::min(batches, trained_ / batch_size_);
  const int64_t rest = batches > whole ? trained_ - whole * batch_size_ : 0;
  return whole * ceil_of(batch_size_, step_rows_) + ceil_of(rest, step_rows_);
}

StepPlan::Part StepPlan::part(int64_t batch, int replica) const {
  const int64_t first = batch - batch % accumulate_;
  const int64_t end = std::min((first + accumulate_) * batch_size_, trained_);
  const int64_t rows = std::min(batch_size_, trained_ - batch * batch_size_);
  const bool ends = batch * batch_size_ + rows == end;
  return {.first_row = (batch - first) * batch_size_ + part_of_batch(rows, replica, replicas_).first_row,
          .all_rows = end - first * batch_size_,
          .begins = batch == first,
          .ends = ends,
          .steps = ends ? steps_of(batch + 1) - steps_of(first) : 0};
}

}  // namespace strait
