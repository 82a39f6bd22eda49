#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "strait/checkpoint/training_state.h"
#include "strait/pipeline/executor.h"
#include "strait/run/metrics.h"
#include "strait/transport/group.h"

namespace strait {

/// What one process knows of an epoch; all of them together are the whole.
struct RankStatistics {
  StepResult train;                                ///< sums over the epoch; zero without the last stage
  std::map<EvaluationMode, StepResult> test;       ///< the test set, in each mode that was scored
  std::vector<BoundaryTraffic> boundaries;         ///< what this process sent and decoded
  TimesOfStages stages;                            ///< of the first replica
  std::map<std::string, uint64_t> feedback_state;  ///< XXH3 of what the endpoints of the links keep, by name
  std::map<std::string, uint64_t> weights;         ///< DataParallel::weight_checksums()
  double seconds = 0;                              ///< of training in this process
  double data_wait_seconds = 0;                    ///< waiting for the loader, in training
  std::vector<LinkMetrics> links;                  ///< LinkLog::take()
};

/// The statistics of all processes, added up; times that they all spend count as the first process measured
/// them. The same on every process. Throws Error when replicas have not kept the same weights.
RankStatistics gather(Group& group, const RankStatistics& mine);

/// Takes the checksums, XXH3, of tensors on any device.
struct StateHasher : StateVisitor {
  void tensor(std::string_view name, at::Tensor& value) override;
  std::map<std::string, uint64_t> sums;  ///< by name
};

/// The checksums of the state that the links keep in this process, one of a pipeline that has `replica` as its
/// number.
std::map<std::string, uint64_t> feedback_state_of(std::vector<BoundaryEndpoints>& boundaries, int replica);

/// Throws Error that names the boundary when the two endpoints of a link, by now in different processes, do not
/// keep the same where they should.
void check_ends_agree(const std::map<std::string, uint64_t>& feedback_state);

/// The share of time of the `ranks` processes of a pipeline in which no stage computes.
double bubble_share(const RankStatistics& all, int ranks);

}  // namespace strait
