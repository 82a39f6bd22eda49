#include "strait/train/step_log.h"

#include <nlohmann/json.hpp>

#include "strait/base/json.h"
#include "strait/base/multiples.h"
#include "strait/train/rank_statistics.h"

namespace strait {

StepLog::Sums StepLog::Sums::operator-(const Sums& earlier) const {
  return {.train = {.loss_sum = train.loss_sum - earlier.train.loss_sum,
                    .correct = train.correct - earlier.train.correct,
                    .count = train.count - earlier.train.count,
                    .rows = train.rows - earlier.train.rows},
          .steps = steps - earlier.steps,
          .raw_bytes = raw_bytes - earlier.raw_bytes,
          .wire_bytes = wire_bytes - earlier.wire_bytes,
          .busy_seconds = busy_seconds - earlier.busy_seconds,
          .seconds = seconds - earlier.seconds};
}

StepLog::Sums& StepLog::Sums::operator+=(const Sums& part) {
  train += part.train;
  steps += part.steps;
  raw_bytes += part.raw_bytes;
  wire_bytes += part.wire_bytes;
  busy_seconds += part.busy_seconds;
  seconds += part.seconds;
  return *this;
}

StepLog::Sums StepLog::sums_of(const TrainingState& state) const {
  Sums sums{.train = state.sums, .steps = static_cast<double>(state.step), .seconds = state.seconds};
  for (const auto& boundary : state.traffic) {
    for (const Traffic* traffic : {&boundary.activations, &boundary.gradients}) {
      sums.raw_bytes += static_cast<double>(traffic->raw_bytes);
      sums.wire_bytes += static_cast<double>(traffic->wire_bytes);
    }
  }
  for (const auto& [stage, times] : state.stages)
    sums.busy_seconds += times.forward_seconds + times.backward_seconds;
  return sums;
}

/// Steps and seconds, which all spend, count as the first process says.
StepLog::Sums StepLog::gathered(const Sums& mine) const {
  const nlohmann::json text = {mine.train.loss_sum, mine.train.correct, mine.train.count, mine.train.rows,
                               mine.raw_bytes,      mine.wire_bytes,    mine.busy_seconds};
  Sums all{.train = {}, .steps = mine.steps, .seconds = mine.seconds};
  for (const auto& each : placement_.group().gather(text.dump())) {
    const auto part = parse_json<WireError>(each, "what another rank has measured");
    all += {.train = {.loss_sum = part.at(0), .correct = part.at(1), .count = part.at(2), .rows = part.at(3)},
            .steps = 0,
            .raw_bytes = part.at(4),
            .wire_bytes = part.at(5),
            .busy_seconds = part.at(6),
            .seconds = 0};
  }
  return all;
}

bool StepLog::is_due(const TrainingState& state, uint64_t steps) const {
  return passes_multiple(static_cast<uint64_t>(options_.train.log_every), state.step, steps);
}

void StepLog::end_epoch(const TrainingState& state) { behind_ += sums_of(state) - seen_; }

StepMetrics StepLog::take(const TrainingState& state, double lr) {
  const Sums now = sums_of(state);
  Sums mine = now - seen_;
  mine += behind_;
  seen_ = now;
  behind_ = {};
  const Sums all = gathered(mine);
  const double time_of_all = all.seconds * static_cast<double>(placement_.pipeline().size());
  return {.step = state.step,
          .epoch = state.epoch,
          .steps = static_cast<int64_t>(all.steps),
          .train = score_of(all.train, options_.task),
          .lr = lr,
          .seconds = all.seconds,
          .samples_per_second = static_cast<double>(all.train.rows) / all.seconds,
          .raw_bytes = all.raw_bytes,
          .wire_bytes = all.wire_bytes,
          .bubble_share = time_of_all > 0 ? 1 - all.busy_seconds / time_of_all : 0};
}

}  // namespace strait
