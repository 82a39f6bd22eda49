#include <algorithm>

#include "strait/base/error.h"
#include "strait/planning/measurement.h"
#include "strait/run/reader.h"
#include "strait/train/placement.h"

namespace strait {
namespace {

constexpr double kMostSeconds = 1e9;  // that anything of a micro-batch takes

void check_seconds(double seconds, std::string_view what, std::string_view where, const std::string& origin) {
  if (seconds >= 0 && seconds <= kMostSeconds) return;
  throw InputError("{}: {} of {}: expected from 0 to {} seconds, found {}", origin, what, where, kMostSeconds,
                   seconds);
}

void check_times(const EpochMetrics& epoch, const std::string& origin) {
  for (const auto& [name, forward, backward] : epoch.stages) {
    check_seconds(forward, "forward_seconds", name, origin);
    check_seconds(backward, "backward_seconds", name, origin);
  }
  for (const auto& boundary : epoch.boundaries) {
    for (const auto& traffic : {boundary.activations, boundary.gradients}) {
      check_seconds(traffic.encode_seconds, "encode_seconds", boundary.name, origin);
      check_seconds(traffic.decode_seconds, "decode_seconds", boundary.name, origin);
    }
  }
}

MessageCost mean_cost(const Traffic& traffic) {
  const auto count = static_cast<double>(std::max<uint64_t>(traffic.messages, 1));
  return {static_cast<double>(traffic.wire_bytes) / count, traffic.encode_seconds / count,
          traffic.decode_seconds / count};
}

/// Those of the cuts, in their order: before a resume an epoch may have had others.
std::vector<BoundaryTraffic> of_cuts(const std::vector<std::string>& cuts,
                                     const std::vector<BoundaryTraffic>& boundaries) {
  std::vector<BoundaryTraffic> all;
  for (const auto& cut : cuts) {
    for (const auto& name : {cut, input_boundary(cut)}) {
      const auto found = std::ranges::find(boundaries, name, &BoundaryTraffic::name);
      if (found != boundaries.end()) all.push_back(*found);
    }
  }
  return all;
}

CandidateCosts costs_of(Candidate own, const std::vector<BoundaryTraffic>& boundaries) {
  CandidateCosts costs{.candidate = std::move(own), .activation = {}, .gradient = {}};
  Traffic all;
  std::string cut;
  for (const auto& boundary : boundaries) {
    const MessageCost activation = mean_cost(boundary.activations);
    if (!cut.empty() && boundary.name == input_boundary(cut)) {
      costs.activation.back().bytes += activation.bytes;
      costs.activation.back().encode_seconds += activation.encode_seconds;
      costs.activation.back().decode_seconds += activation.decode_seconds;
    } else {
      cut = boundary.name;
      costs.activation.push_back(activation);
      costs.gradient.push_back(mean_cost(boundary.gradients));
    }
    all += boundary.activations;
    all += boundary.gradients;
  }
  costs.ratio = all.ratio();
  return costs;
}

}  // namespace

RunMeasurement measurement_of(const Config& config, const EpochMetrics& epoch, const std::string& origin) {
  if (epoch.stages.empty()) {
    throw InputError("{}: expected \"stages\" with the seconds of each stage in epoch {}, found none", origin,
                     epoch.epoch);
  }
  check_times(epoch, origin);
  RunMeasurement run;
  const auto candidates = candidates_for(config);
  run.stages = epoch.stages;
  run.own = costs_of(*std::ranges::find_if(candidates, &Candidate::own),
                     of_cuts(config.model.cuts, epoch.boundaries));
  run.samples_per_second = epoch.samples_per_second;
  const size_t stages = config.model.cuts.size() + 1;
  if (run.stages.size() != stages || run.own.activation.size() + 1 != stages || !(run.samples_per_second > 0)) {
    throw InputError("{}: expected an epoch of {} stages and their boundaries", origin, stages);
  }
  return run;
}

RunMeasurement read_measurement(const Config& config, const std::filesystem::path& folder) {
  return measurement_of(config, read_last_epoch(folder), (folder / "metrics.jsonl").string());
}

}  // namespace strait
