#include "strait/planning/network_simulation.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/units.h"
#include "strait/planning/measurement.h"

namespace strait {
namespace {

const Config& with_one_replica(const Config& config) {
  if (config.pipeline.replicas == 1) return config;
  throw InputError(
      "pipeline.replicas: expected 1, because only the step of one pipeline can be simulated; found {}",
      config.pipeline.replicas);
}

/// The batches of an epoch, of which its last step may have fewer than the others: as many as the messages that
/// crossed a boundary make. Where the file does not count them, every step has the same.
int64_t batches_of(const Config& config, const EpochMetrics& epoch) {
  const int64_t most = epoch.steps * config.train.accumulate;
  uint64_t messages = 0;
  for (const auto& boundary : epoch.boundaries) messages = std::max(messages, boundary.activations.messages);
  if (messages == 0) return most;
  const int64_t micro_batches = micro_batches_of(config).count;
  const int64_t counted = (static_cast<int64_t>(messages) + micro_batches - 1) / micro_batches;
  return std::clamp(counted, std::min(most, most - config.train.accumulate + 1), most);
}

/// Of an epoch's mean step.
double batches_per_step(const Config& config, const EpochMetrics& epoch) {
  if (epoch.steps <= 0) return config.train.accumulate;
  return static_cast<double>(batches_of(config, epoch)) / static_cast<double>(epoch.steps);
}

}  // namespace

std::vector<StageSeconds> stages_on(std::vector<StageSeconds> measured, const NetworkOptions& network) {
  for (size_t i = 0; i < measured.size(); ++i) {
    auto& [name, forward, backward] = measured[i];
    const double here = forward + backward;
    double factor = 1 / network.compute;
    if (!network.stage_seconds.empty()) factor = here > 0 ? network.stage_seconds.at(i) / here : 0;
    forward *= factor;
    backward *= factor;
  }
  return measured;
}

NetworkSimulation::NetworkSimulation(const Config& config)
    : config_(with_one_replica(config)),
      predictor_(config, static_cast<int>(config.model.cuts.size()) + 1, CodecPlace::own_threads) {}

LinkRate link_of(const NetworkOptions& network) {
  return {parse_bandwidth(network.bandwidth, network.name), parse_seconds(network.latency, network.name)};
}

double NetworkSimulation::step_seconds(const EpochMetrics& epoch, const NetworkOptions& network,
                                       const std::string& origin) const {
  return step_seconds(epoch, std::span(&network, 1), origin).front();
}

std::vector<double> NetworkSimulation::step_seconds(const EpochMetrics& epoch,
                                                    std::span<const NetworkOptions> networks,
                                                    const std::string& origin) const {
  const RunMeasurement run = measurement_of(config_, epoch, origin);
  const bool is_stream = steps_per_micro_batch(weight_versions(config_.pipeline.schedule));
  const double batches = is_stream ? 1.0 / micro_batches_of(config_).count : batches_per_step(config_, epoch);
  std::vector<double> seconds;
  for (const auto& network : networks) {
    const Measurement measurement{.stages = stages_on(run.stages, network), .candidates = {run.own}};
    seconds.push_back(batches * predictor_.predict(measurement, link_of(network)).steps.front().seconds);
  }
  return seconds;
}

std::vector<NetworkMetrics> NetworkSimulation::metrics(const EpochMetrics& epoch,
                                                       const std::vector<NetworkMetrics>& before) const {
  const auto steps = step_seconds(epoch, config_.networks, "networks");
  std::vector<NetworkMetrics> all;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string& name = config_.networks[i].name;
    const auto known = std::ranges::find(before, name, &NetworkMetrics::name);
    const double seconds = known == before.end() ? 0 : known->seconds;
    all.push_back({name, steps[i], seconds + steps[i] * static_cast<double>(epoch.steps)});
  }
  return all;
}

}  // namespace strait
