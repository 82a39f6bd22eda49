#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strait/report/tables.h"
#include "strait/run/metric.h"

namespace strait::report {

/// The first of all_metrics() and the loss that a run of the table has; accuracy when none has run.
Metric metric_of(const Table& table);

/// The mean over seeds.
struct Estimate {
  Value mean;     ///< empty without a value
  Value error;    ///< standard error of the mean; empty below two seeds
  int count = 0;  ///< seeds
};

/// Mean and standard error (deviation with n - 1 over the root of n).
Estimate estimate(const std::vector<double>& values);

/// A point of a learning curve.
struct Point {
  int64_t place;   ///< the epoch, from 1, or the optimizer step
  Estimate value;  ///< of the metric or the loss
};

/// Points by rising place.
using Curve = std::vector<Point>;

/// The bytes of an average step of the last epoch.
struct StepTraffic {
  std::string boundary;    ///< its name
  Value raw_activations;   ///< bytes of the tensors, forward
  Value wire_activations;  ///< bytes of the frames, forward
  Value raw_gradients;     ///< bytes of the tensors, backward
  Value wire_gradients;    ///< bytes of the frames, backward
};

/// In the order in which runs are counted.
inline constexpr std::array kStatuses = {Status::done,    Status::diverged, Status::failed,
                                         Status::running, Status::stopped,  Status::waiting};

/// A mode of evaluation with compression on.
struct Mode {
  std::string_view name;  ///< `frozen`
  Scores Epoch::*scores;  ///< where an epoch has them
};

/// All of them.
inline constexpr std::array<Mode, 3> kModes = {
    {{"plain", &Epoch::plain}, {"frozen", &Epoch::frozen}, {"live", &Epoch::live}}};

/// How many of several runs have a status.
struct StatusCount {
  Status status;  ///< that they have
  int runs;       ///< how many; at least 1
};

/// Those that occur, in the order of kStatuses.
std::vector<StatusCount> count_statuses(const std::vector<Status>& statuses);

/// Scores in one mode of evaluation.
struct Scored {
  Value best;     ///< the best epoch of the best seed
  Estimate last;  ///< the last epoch that all counted seeds have finished; empty where one's is not finite
  Estimate loss;  ///< of the same epoch
};

/// The scores of a variant's counted runs in the mode that `mode` names.
Scored scored(const Variant& variant, const Metric& metric, Scores Epoch::*mode);

/// A counted run at the last epoch that all counted runs of its variant have finished and scored.
struct SeedScores {
  uint64_t seed;         ///< of the run
  int epoch;             ///< from 0
  const Scores* scores;  ///< never null
};

/// The counted runs of a variant in their order; none where they share no scored epoch.
std::vector<SeedScores> last_of_seeds(const Variant& variant, Scores Epoch::*mode);

/// A mode in which runs of a table were scored.
struct Scoring {
  std::string name;     ///< `off`, `on`, `frozen`
  std::string label;    ///< `off`, `on (plain)`, `frozen`
  Scores Epoch::*mode;  ///< where an epoch has them
};

/// Off, on with what that is, and the other modes that there are.
std::vector<Scoring> scorings_of(const Table& table);

/// What *on* is in these runs: `plain`, or `live or plain` where they differ.
std::string evaluation_of(const Table& table);

/// The same of one variant.
std::string evaluation_of(const Variant& variant);

/// A row of the table of results.
struct Summary {
  Scored off;               ///< with compression off
  Scored on;                ///< with compression on
  Value ratio_activations;  ///< uncompressed over wire bytes of each seed's last epoch, summed over boundaries
  Value ratio_gradients;    ///< the same of gradients
  Value ratio;              ///< the same of both directions together
  Value wire_bytes_per_step;          ///< both directions, all boundaries
  Value seconds;                      ///< mean over the counted seeds
  int seeds = 0;                      ///< how many runs the last scores are of
  std::vector<StatusCount> statuses;  ///< those that occur, in the order of kStatuses
};

/// The runs that count for means: those that are done; when none is, those that are under way. A diverged
/// or failed run has no last epoch to compare.
std::vector<const Run*> counted_runs(const Variant& variant);

/// The row of a variant.
Summary summarise(const Variant& variant, const Metric& metric);

/// Boundary by boundary, the mean over the counted seeds.
std::vector<StepTraffic> step_traffic(const Variant& variant);

/// The means of the values at each place.
Curve curve_of(const std::map<int64_t, std::vector<double>>& values);

/// The mean over all seeds that have the epoch, for a quantity that `value` takes from one.
template <class Take>
Curve curve(const Variant& variant, Take value) {
  std::map<int64_t, std::vector<double>> by_epoch;
  for (const auto& run : variant.runs) {
    for (const auto& epoch : run.epochs) {
      if (const Value measured = value(epoch)) by_epoch[int64_t{epoch.number} + 1].push_back(*measured);
    }
  }
  return curve_of(by_epoch);
}

/// The loss over the steps after which it was measured within epochs, likewise.
Curve loss_over_steps(const Variant& variant, Scores StepScores::*scores);

/// The member of a map, or nothing.
Value find(const std::map<std::string, double>& values, std::string_view key);

}  // namespace strait::report
