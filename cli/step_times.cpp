#include "cli/step_times.h"

#include <fmt/format.h>

#include <set>

#include "strait/base/error.h"
#include "strait/planning/network_simulation.h"
#include "strait/report/networks.h"
#include "strait/run/reader.h"

namespace strait::cli {
namespace {

const std::vector<NetworkOptions>& networks() {
  static const std::vector<NetworkOptions> kAll = [] {
    std::vector<NetworkOptions> made;
    for (const auto rate : report::kNetworkRates) {
      for (const auto latency : report::kNetworkLatencies) {
        made.push_back({.name = fmt::format("{},{}", rate, latency),
                        .bandwidth = std::string(rate),
                        .latency = std::string(latency)});
      }
    }
    return made;
  }();
  return kAll;
}

/// What an epoch took, to the nanosecond, tells it from that of a run which is made anew in the same folder.
std::string key_of(const report::Run& run, const report::Epoch& epoch) {
  return fmt::format("{}\n{}\n{}\n{}", run.path.string(), run.config_hash, epoch.number, epoch.seconds);
}

/// Those of the run's epochs that are in its file; none where that cannot be read now.
std::vector<EpochMetrics> epochs_in_file(const report::Run& run, const std::set<int>& epochs) {
  if (epochs.empty()) return {};
  try {
    auto all = read_epochs(run.path, run.status == report::Status::done);
    std::erase_if(all, [&](const EpochMetrics& epoch) { return !epochs.contains(epoch.epoch); });
    return all;
  } catch (const InputError&) {
    return {};
  }
}

/// The step seconds of these epochs of the run by their numbers; none of one that cannot be simulated.
std::map<int, std::vector<double>> simulated(const report::Run& run, const std::vector<EpochMetrics>& epochs) {
  std::map<int, std::vector<double>> seconds;
  for (const auto& epoch : epochs) seconds[epoch.epoch] = {};
  if (epochs.empty()) return seconds;
  try {
    const std::string origin = (run.path / "metrics.jsonl").string();
    const NetworkSimulation simulation(parse_config(run.config, (run.path / "config.toml").string()));
    for (const auto& epoch : epochs) {
      seconds[epoch.epoch] = simulation.step_seconds(epoch, networks(), origin);
    }
  } catch (const InputError&) {
    // The page says which runs it has no times of.
  }
  return seconds;
}

}  // namespace

void StepTimes::add_to(report::Run& run) {
  std::set<int> unknown;
  for (const auto& epoch : run.epochs) {
    if (!known_.contains(key_of(run, epoch))) unknown.insert(epoch.number);
  }
  const auto fresh = simulated(run, epochs_in_file(run, unknown));
  for (auto& epoch : run.epochs) {
    if (const auto found = fresh.find(epoch.number); found != fresh.end()) {
      known_.try_emplace(key_of(run, epoch), found->second);
    }
    const auto known = known_.find(key_of(run, epoch));
    epoch.step_seconds = known == known_.end() ? std::vector<double>() : known->second;
  }
}

void StepTimes::add_to(std::vector<report::Table>& tables) {
  for (auto& table : tables) {
    for (auto& variant : table.variants) {
      for (auto& run : variant.runs) add_to(run);
    }
  }
}

}  // namespace strait::cli
