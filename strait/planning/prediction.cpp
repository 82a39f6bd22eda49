#include "strait/planning/prediction.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/pipeline/validate.h"

namespace strait {
namespace {

/// Forwards of a plan; a simulation of so many takes a few seconds and a gigabyte.
constexpr int64_t kMostForwards = int64_t{1} << 21;

/// Micro-batches of a stream until the pipeline is full and goes on evenly.
int beginning_of_stream(int stages) { return 2 * stages; }

/// As many batches as there are stages: the time of one batch then hardly depends on where the stream is cut.
int batches_of_stream(int stages) { return stages; }

/// Where the number of stages comes from.
const char* key_of_stages(const Config& config, int stages) {
  return static_cast<size_t>(stages) == config.model.cuts.size() + 1 ? "model.cuts" : "--stages";
}

Plan plan_for(const Config& config, int stages, int micro_batches) {
  try {
    Plan plan = lower(
        make_schedule(config.pipeline.schedule, {stages, micro_batches, config.pipeline.stages_per_rank}));
    validate(plan, passes_of(plan));  // once for all simulations
    return plan;
  } catch (const InputError& error) {
    throw InputError("{}: pipeline.stages_per_rank: {}", key_of_stages(config, stages), error.what());
  }
}

void check_forwards(const Config& config, int stages) {
  const int64_t micro_batches = micro_batches_of(config).count;
  const auto forwards = [&](int64_t count) {
    if (!steps_per_micro_batch(weight_versions(config.pipeline.schedule))) return count * micro_batches;
    return count * (2 * count + count * micro_batches);
  };
  if (forwards(stages) <= kMostForwards) return;
  int most = 1;
  while (forwards(most + 1) <= kMostForwards) ++most;
  throw InputError("{}: expected at most {} stages with {} micro-batches, found {}",
                   key_of_stages(config, stages), most, micro_batches, stages);
}

}  // namespace

bool LinkPrediction::compression_pays() const { return none().seconds > kWorthwhile * fastest().seconds; }

Predictor::Predictor(const Config& config, int stages, CodecPlace codec_place)
    : versions_(strait::weight_versions(config.pipeline.schedule)), codec_place_(codec_place) {
  check_forwards(config, stages);
  const int micro_batches = micro_batches_of(config).count;
  if (!steps_per_micro_batch(versions_)) {
    plan_ = plan_for(config, stages, micro_batches);
    return;
  }
  const int before = beginning_of_stream(stages);
  batches_ = batches_of_stream(stages);
  beginning_ = plan_for(config, stages, before);
  plan_ = plan_for(config, stages, before + batches_ * micro_batches);
}

Predictor::Prediction Predictor::step(const CostModel& costs) const {
  const Simulation all = simulate_valid(plan_, costs);
  if (!beginning_) return {all.makespan, all.shares};
  const Simulation before = simulate_valid(*beginning_, costs);
  const auto mean = [&](double TimeShares::*part) {
    return std::max(0.0, all.shares.*part - before.shares.*part) / batches_;
  };
  Prediction step{.seconds = (all.makespan - before.makespan) / batches_,
                  .shares = {.compute = mean(&TimeShares::compute),
                             .bubble = mean(&TimeShares::bubble),
                             .codec = mean(&TimeShares::codec),
                             .wire = mean(&TimeShares::wire),
                             .latency = mean(&TimeShares::latency)}};
  // The two critical paths may differ at their ends.
  const double scale = step.shares.total() > 0 ? step.seconds / step.shares.total() : 0;
  for (double* part : {&step.shares.compute, &step.shares.bubble, &step.shares.codec, &step.shares.wire,
                       &step.shares.latency}) {
    *part *= scale;
  }
  return step;
}

std::vector<int> Predictor::weight_versions() const {
  std::vector<int> versions = simulate(plan_).peak_live;
  const int most = versions_ == WeightVersions::one         ? 1
                   : versions_ == WeightVersions::predicted ? 2
                                                            : plan_.stages;
  for (int& count : versions) count = std::min(count, most);
  return versions;
}

CostModel Predictor::costs_of(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                              const LinkRate& link, std::span<const BoundaryLink> boundary_links) const {
  CostModel costs{.forward = {},
                  .backward = {},
                  .activation = candidate.activation,
                  .gradient = candidate.gradient,
                  .link = link,
                  .boundary_links = {boundary_links.begin(), boundary_links.end()},
                  .codec_place = codec_place_};
  for (const auto& stage : stages) {
    costs.forward.push_back(stage.forward);
    costs.backward.push_back(stage.backward);
  }
  return costs;
}

LinkPrediction Predictor::predict(const Measurement& measurement, const LinkRate& link,
                                  std::span<const BoundaryLink> boundary_links) const {
  LinkPrediction prediction{
      .link = link, .boundary_links = {boundary_links.begin(), boundary_links.end()}, .steps = {}};
  for (const auto& candidate : measurement.candidates) {
    const Prediction found = step(costs_of(measurement.stages, candidate, link, boundary_links));
    prediction.steps.push_back({.candidate = candidate.candidate.name,
                                .own = candidate.candidate.own,
                                .ratio = candidate.ratio,
                                .seconds = found.seconds,
                                .shares = found.shares});
  }
  const auto fastest = std::ranges::min_element(prediction.steps, {}, &CandidateStep::seconds);
  prediction.best = static_cast<size_t>(fastest - prediction.steps.begin());
  return prediction;
}

double Predictor::ideal_seconds(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                                const LinkRate& link, std::span<const BoundaryLink> boundary_links) const {
  CostModel costs = costs_of(stages, candidate, link, boundary_links);
  for (auto* messages : {&costs.activation, &costs.gradient}) {
    for (auto& message : *messages) message.encode_seconds = message.decode_seconds = 0;
  }
  return step(costs).seconds;
}

}  // namespace strait
