#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/experiment/measurement.h"
#include "strait/train/metrics.h"

namespace strait {
namespace {

std::string last_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw InputError("{}: cannot be read", path.string());
  std::string last;
  for (std::string line; std::getline(in, line) && !in.eof();) last = line;  // one without its end is not whole
  if (last.empty()) throw InputError("{}: expected an epoch at least, found none", path.string());
  return last;
}

MessageCost mean_cost(const Traffic& traffic) {
  const auto count = static_cast<double>(std::max<uint64_t>(traffic.messages, 1));
  return {static_cast<double>(traffic.wire_bytes) / count, traffic.encode_seconds / count,
          traffic.decode_seconds / count};
}

CandidateCosts costs_of(Candidate own, const std::vector<BoundaryTraffic>& boundaries) {
  CandidateCosts costs{.candidate = std::move(own), .activation = {}, .gradient = {}};
  Traffic all;
  for (const auto& boundary : boundaries) {
    costs.activation.push_back(mean_cost(boundary.activations));
    costs.gradient.push_back(mean_cost(boundary.gradients));
    all += boundary.activations;
    all += boundary.gradients;
  }
  costs.ratio = all.ratio();
  return costs;
}

}  // namespace

RunMeasurement read_measurement(const Config& config, const std::filesystem::path& folder) {
  const auto path = folder / "metrics.jsonl";
  RunMeasurement run;
  try {
    const auto epoch = epoch_metrics_of(nlohmann::json::parse(last_line(path)));
    if (epoch.stages.empty()) {
      throw InputError("{}: expected \"stages\" with the seconds of each stage in the last epoch, found none",
                       path.string());
    }
    const auto candidates = candidates_for(config);
    run.stages = epoch.stages;
    run.own = costs_of(*std::ranges::find_if(candidates, &Candidate::own), epoch.boundaries);
    run.samples_per_second = epoch.samples_per_second;
  } catch (const nlohmann::json::exception&) {
    throw InputError("{}: is not what a run writes", path.string());
  }
  const size_t stages = config.model.cuts.size() + 1;
  if (run.stages.size() != stages || run.own.activation.size() + 1 != stages || !(run.samples_per_second > 0)) {
    throw InputError("{}: expected an epoch of {} stages and their boundaries", path.string(), stages);
  }
  return run;
}

}  // namespace strait
