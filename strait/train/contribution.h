#pragma once

#include <map>
#include <vector>

#include "strait/pipeline/executor.h"
#include "strait/train/metrics.h"
#include "strait/transport/group.h"

namespace strait {

/// What one process knows of an epoch; all of them together are the whole.
struct Contribution {
  StepResult train;
  StepResult off;  ///< the test set without compression
  StepResult on;   ///< and with it
  std::vector<BoundaryTraffic> boundaries;
  std::map<int, StageTimes> stages;  ///< by number
  double seconds = 0;                ///< of training in this process
  double data_wait_seconds = 0;
  double measured_seconds = 0;  ///< the part of `seconds` that `stages` is of
};

/// The contributions of all processes, added up; times that they all spend count as the first process measured
/// them. The same on every process.
Contribution gather(Group& group, const Contribution& mine);

/// The share of `ranks` processes' time in which no stage computes.
double bubble_share(const Contribution& all, int ranks);

}  // namespace strait
