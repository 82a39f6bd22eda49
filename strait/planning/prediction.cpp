#include "strait/planning/prediction.h"

#include <algorithm>

#include "strait/base/error.h"

namespace strait {
namespace {

/// Forwards of one step; a simulation of so many takes a few seconds and a gigabyte.
constexpr int64_t kMostForwards = int64_t{1} << 21;

Plan plan_for(const Config& config, int stages) {
  const int micro_batches = micro_batches_of(config).count;
  if (int64_t{stages} * micro_batches > kMostForwards) {
    throw InputError("--stages: expected at most {} stages with {} micro-batches, found {}",
                     kMostForwards / micro_batches, micro_batches, stages);
  }
  try {
    return lower(
        make_schedule(config.pipeline.schedule, {stages, micro_batches, config.pipeline.stages_per_rank}));
  } catch (const InputError& error) {
    throw InputError("--stages: pipeline.stages_per_rank: {}", error.what());
  }
}

}  // namespace

bool LinkPrediction::compression_pays() const { return none().seconds > kWorthwhile * fastest().seconds; }

Predictor::Predictor(const Config& config, int stages, CodecPlace codec_place)
    : plan_(plan_for(config, stages)), codec_place_(codec_place) {}

CostModel Predictor::costs_of(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                              const LinkRate& link) const {
  CostModel costs{.forward = {},
                  .backward = {},
                  .activation = candidate.activation,
                  .gradient = candidate.gradient,
                  .link = link,
                  .codec_place = codec_place_};
  for (const auto& stage : stages) {
    costs.forward.push_back(stage.forward);
    costs.backward.push_back(stage.backward);
  }
  return costs;
}

LinkPrediction Predictor::predict(const Measurement& measurement, const LinkRate& link) const {
  LinkPrediction prediction{.link = link, .steps = {}};
  for (const auto& candidate : measurement.candidates) {
    const Simulation step = simulate(plan_, costs_of(measurement.stages, candidate, link));
    prediction.steps.push_back({.candidate = candidate.candidate.name,
                                .own = candidate.candidate.own,
                                .ratio = candidate.ratio,
                                .seconds = step.makespan,
                                .shares = step.shares});
  }
  const auto fastest = std::ranges::min_element(prediction.steps, {}, &CandidateStep::seconds);
  prediction.best = static_cast<size_t>(fastest - prediction.steps.begin());
  return prediction;
}

double Predictor::ideal_seconds(std::span<const StageSeconds> stages, const CandidateCosts& candidate,
                                const LinkRate& link) const {
  CostModel costs = costs_of(stages, candidate, link);
  for (auto* messages : {&costs.activation, &costs.gradient}) {
    for (auto& message : *messages) message.encode_seconds = message.decode_seconds = 0;
  }
  return simulate(plan_, costs).makespan;
}

}  // namespace strait
