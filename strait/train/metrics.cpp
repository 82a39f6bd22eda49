#include "strait/train/metrics.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace strait {
namespace {

using nlohmann::json;

json score_json(const Score& score) { return {{"loss", score.loss}, {"accuracy", score.accuracy}}; }

json number_or_null(const std::optional<double>& number) { return number ? json(*number) : json(); }

json diagnostics_json(const Diagnostics& diagnostics) {
  json quantiles;
  for (size_t i = 0; i < Diagnostics::kShares.size(); ++i) {
    quantiles[fmt::format("{}", Diagnostics::kShares[i])] = diagnostics.quantiles[i];
  }
  return {{"messages", diagnostics.messages},
          {"zeros", diagnostics.zeros},
          {"quantiles", std::move(quantiles)},
          {"relative_error", diagnostics.relative_error},
          {"cosine", number_or_null(diagnostics.cosine)},
          {"residual_norm", number_or_null(diagnostics.residual_norm)}};
}

json traffic_json(const Traffic& traffic, const std::optional<Diagnostics>& diagnostics) {
  json all = {{"messages", traffic.messages},
              {"raw_bytes", traffic.raw_bytes},
              {"wire_bytes", traffic.wire_bytes},
              {"ratio", traffic.ratio()},
              {"encode_seconds", traffic.encode_seconds},
              {"decode_seconds", traffic.decode_seconds}};
  if (diagnostics) all["diagnostics"] = diagnostics_json(*diagnostics);
  return all;
}

}  // namespace

Score score_of(const StepResult& sums) {
  const auto count = static_cast<double>(sums.count);
  return {sums.loss_sum / count, 100.0 * static_cast<double>(sums.correct) / count};
}

Traffic EpochMetrics::total(Direction direction) const {
  Traffic sum;
  for (const auto& boundary : boundaries) {
    sum += direction == Direction::activation ? boundary.activations : boundary.gradients;
  }
  return sum;
}

json to_json(const Evaluation& evaluation) {
  return {
      {"off", score_json(evaluation.off)}, {"on", score_json(evaluation.on)}, {"samples", evaluation.samples}};
}

json to_json(const EpochMetrics& metrics) {
  json boundaries = json::array();
  for (const auto& boundary : metrics.boundaries) {
    boundaries.push_back({{"name", boundary.name},
                          {"activations", traffic_json(boundary.activations, boundary.activation_diagnostics)},
                          {"gradients", traffic_json(boundary.gradients, boundary.gradient_diagnostics)}});
  }
  return {{"epoch", metrics.epoch},
          {"steps", metrics.steps},
          {"train_loss", metrics.train.loss},
          {"train_accuracy", metrics.train.accuracy},
          {"test", to_json(metrics.test)},
          {"lr", metrics.lr},
          {"seconds", metrics.seconds},
          {"samples_per_second", metrics.samples_per_second},
          {"evaluation_seconds", metrics.evaluation_seconds},
          {"data_wait_seconds", metrics.data_wait_seconds},
          {"boundaries", std::move(boundaries)}};
}

}  // namespace strait
