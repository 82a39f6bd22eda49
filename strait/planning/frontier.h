#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strait/config/config.h"
#include "strait/run/metrics.h"

namespace strait {

/// A quality that training is to reach on the test set.
struct QualityTarget {
  std::string metric;  ///< `loss`, or the name of a Metric
  double value = 0;    ///< the loss at most; a metric as its higher_is_better says
  bool off = false;    ///< with compression off instead of on
};

/// Of a text such as `loss=1.40` or `accuracy=55`. Throws InputError that names `what`.
QualityTarget parse_quality_target(const std::string& text, const std::string& what);

/// What a run has left.
struct TrainedRun {
  std::string origin;                ///< its metrics.jsonl, for messages
  Config config;                     ///< of which it is
  std::vector<EpochMetrics> epochs;  ///< finished, in order
};

/// What it took until the first evaluation that had the target.
struct TimeToTarget {
  uint64_t steps = 0;  ///< of the optimizer, of the whole training
  double seconds = 0;  ///< of these steps over the network, by simulation
  double bytes = 0;    ///< over all boundaries, both directions
};

/// Nothing where no evaluation of the run has the target. Steps, seconds and bytes of an epoch count in
/// proportion where the evaluation was within it. Throws InputError where scores lack the metric, and what
/// NetworkSimulation throws.
std::optional<TimeToTarget> time_to_target(const TrainedRun& run, const QualityTarget& target,
                                           const NetworkOptions& network);

/// Runs that differ in their seed alone.
struct TrainedVariant {
  std::string name;              ///< for people
  std::vector<TrainedRun> runs;  ///< at least one
};

/// A variant's way to the target: means over the seeds that reached it.
struct FrontierRow {
  std::string variant;         ///< its name
  int seeds = 0;               ///< runs
  int reached = 0;             ///< those that reached the target; where it is 0, the rest says nothing
  double steps = 0;            ///< of the optimizer
  double step_seconds = 0;     ///< seconds over steps
  double seconds = 0;          ///< over the network
  double seconds_error = 0;    ///< standard error of the mean; 0 of one seed
  double bytes = 0;            ///< over all boundaries, both directions
  bool is_compressed = false;  ///< whether any run sent fewer bytes than its tensors have
};

/// Sorted by seconds; those that never reach the target last, in the order given. Throws InputError where the
/// runs are of different tasks: another data.kind, or scores that have not the same metrics.
std::vector<FrontierRow> frontier(const std::vector<TrainedVariant>& variants, const QualityTarget& target,
                                  const NetworkOptions& network);

/// The fastest row without compression; null where there is none that reached the target.
const FrontierRow* none_of(const std::vector<FrontierRow>& rows);

}  // namespace strait
