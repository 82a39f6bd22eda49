#pragma once

#include "strait/checkpoint/training_state.h"
#include "strait/train/link_log.h"
#include "strait/train/placed_executor.h"
#include "strait/train/rank_statistics.h"
#include "strait/train/weight_update.h"

namespace strait {

/// Makes an epoch's metrics of what the parts of a training measure: traffic, times, diagnostics.
class Recorder {
 public:
  /// All of them must outlive it; `trace` may be null.
  Recorder(Placement& placement, Executor& executor, DataParallel& data_parallel, const TrainerOptions& options,
           Trace* trace)
      : placement_(placement),
        executor_(executor),
        data_parallel_(data_parallel),
        options_(options),
        links_(placement.group(), trace) {}

  /// Takes the measurements since the last call into the position, so that an epoch that is resumed, be it at
  /// its end, has those of all its steps; diagnostics of the steps since the resume, where there are any.
  void take_in(TrainingState& state);

  /// What this process knows of the epoch that is done but for the test set, with the checksums that ranks and
  /// replicas compare. Diagnostics begin anew.
  RankStatistics statistics(TrainingState& state);

  /// The epoch's metrics without times of evaluation, of what all processes know. `steps` and `lr` are the
  /// epoch's.
  EpochMetrics epoch_metrics(const RankStatistics& all, const TrainingState& state, int64_t steps,
                             double lr) const;

  /// The scores of the test set, of what all processes know.
  Evaluation evaluation_of(const RankStatistics& all) const;

 private:
  Placement& placement_;
  Executor& executor_;
  DataParallel& data_parallel_;
  const TrainerOptions& options_;
  LinkLog links_;
};

}  // namespace strait
