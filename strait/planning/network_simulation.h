#pragma once

#include <span>
#include <string>
#include <vector>

#include "strait/config/config.h"
#include "strait/planning/prediction.h"
#include "strait/run/metrics.h"

namespace strait {

/// The links of a network.
LinkRate link_of(const NetworkOptions& network);

/// Stages' times that were measured here as they are on the machines of the network; those that it gives are
/// parted into forward and backward as they are here.
std::vector<StageSeconds> stages_on(std::vector<StageSeconds> measured, const NetworkOptions& network);

/// How long the steps of a run would take over networks that it did not have: its schedule's plan, simulated
/// with the stage times, message sizes and codec times that an epoch has measured. Every stage is in a process
/// of its own there (or as pipeline.stages_per_rank says), whose codecs work beside its computation. See
/// simulate() for what is modelled; the optimizer's step and the loading of data are not.
class NetworkSimulation {
 public:
  /// Of a run of that configuration. Throws InputError for one with several replicas of its pipeline.
  explicit NetworkSimulation(const Config& config);

  /// Seconds of a step of the optimizer, the mean of the epoch's, whose last may have fewer batches. `origin`
  /// is the file of the epoch, for messages: throws InputError where it has no stage times.
  double step_seconds(const EpochMetrics& epoch, const NetworkOptions& network,
                      const std::string& origin) const;

  /// The same over each of several networks.
  std::vector<double> step_seconds(const EpochMetrics& epoch, std::span<const NetworkOptions> networks,
                                   const std::string& origin) const;

  /// Those of the configuration's networks; `before` is what it said of the epoch before, if anything.
  std::vector<NetworkMetrics> metrics(const EpochMetrics& epoch,
                                      const std::vector<NetworkMetrics>& before) const;

 private:
  Config config_;
  Predictor predictor_;
};

}  // namespace strait
