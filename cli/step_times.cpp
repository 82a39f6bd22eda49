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

/// The step seconds of these epochs of the run by their numbers; of fewer where one cannot be simulated.
std::map<int, std::vector<double>> simulated(const report::Run& run, const std::set<int>& epochs) {
  std::map<int, std::vector<double>> seconds;
  if (epochs.empty()) return seconds;
  try {
    const std::string origin = (run.path / "metrics.jsonl").string();
    const NetworkSimulation simulation(parse_config(run.config, (run.path / "config.toml").string()));
    for (const auto& epoch : read_epochs(run.path, run.status == report::Status::done)) {
      if (epochs.contains(epoch.epoch))
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
  auto fresh = simulated(run, unknown);
  for (auto& epoch : run.epochs) {
    epoch.step_seconds = known_.try_emplace(key_of(run, epoch), std::move(fresh[epoch.number])).first->second;
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
