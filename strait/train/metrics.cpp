#include "strait/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "strait/base/json.h"

namespace strait {
namespace {

using nlohmann::json;

json number_or_null(const std::optional<double>& number) { return number ? json(*number) : json(); }

std::string share_name(size_t i) { return fmt::format("{}", Diagnostics::kShares[i]); }

json diagnostics_json(const Diagnostics& diagnostics) {
  json quantiles;
  for (size_t i = 0; i < Diagnostics::kShares.size(); ++i) {
    quantiles[share_name(i)] = diagnostics.quantiles[i];
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

Traffic traffic_in(const json& json) {
  return {.messages = json.at("messages"),
          .raw_bytes = json.at("raw_bytes"),
          .wire_bytes = json.at("wire_bytes"),
          .encode_seconds = json.at("encode_seconds"),
          .decode_seconds = json.at("decode_seconds")};
}

std::optional<double> number_if_any(const json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

std::optional<Diagnostics> diagnostics_in(const json& traffic) {
  if (!traffic.contains("diagnostics")) return std::nullopt;
  const auto& from = traffic.at("diagnostics");
  Diagnostics diagnostics{.messages = from.at("messages"),
                          .zeros = from.at("zeros"),
                          .quantiles = {},
                          .relative_error = from.at("relative_error"),
                          .cosine = number_if_any(from.at("cosine")),
                          .residual_norm = number_if_any(from.at("residual_norm"))};
  for (size_t i = 0; i < Diagnostics::kShares.size(); ++i) {
    diagnostics.quantiles[i] = from.at("quantiles").at(share_name(i));
  }
  return diagnostics;
}

}  // namespace

Score score_of(const StepResult& sums, bool is_text) {
  const auto count = static_cast<double>(sums.count);
  Score score{sums.loss_sum / count, 100.0 * static_cast<double>(sums.correct) / count};
  if (is_text) score.perplexity = std::exp(score.loss);
  return score;
}

bool is_better(const Score& score, const Score& than) {
  return score.perplexity ? score.loss < than.loss : score.accuracy > than.accuracy;
}

void add_traffic(std::vector<BoundaryTraffic>& sum, const std::vector<BoundaryTraffic>& part) {
  for (const auto& boundary : part) {
    auto found = std::ranges::find(sum, boundary.name, &BoundaryTraffic::name);
    if (found == sum.end())
      found = sum.insert(found, {.name = boundary.name, .activations = {}, .gradients = {}});
    found->activations += boundary.activations;
    found->gradients += boundary.gradients;
    if (boundary.activation_diagnostics) found->activation_diagnostics = boundary.activation_diagnostics;
    if (boundary.gradient_diagnostics) found->gradient_diagnostics = boundary.gradient_diagnostics;
  }
}

Traffic EpochMetrics::total(Direction direction) const {
  Traffic sum;
  for (const auto& boundary : boundaries) {
    sum += direction == Direction::activation ? boundary.activations : boundary.gradients;
  }
  return sum;
}

json to_json(const Score& score) {
  json all = {{"loss", score.loss}, {"accuracy", score.accuracy}};
  if (score.perplexity) all["perplexity"] = std::isfinite(*score.perplexity) ? json(*score.perplexity) : json();
  return all;
}

json to_json(const Evaluation& evaluation) {
  return {{"off", to_json(evaluation.off)}, {"on", to_json(evaluation.on)}, {"samples", evaluation.samples}};
}

json to_json(const std::vector<BoundaryTraffic>& boundaries) {
  json list = json::array();
  for (const auto& boundary : boundaries) {
    list.push_back({{"name", boundary.name},
                    {"activations", traffic_json(boundary.activations, boundary.activation_diagnostics)},
                    {"gradients", traffic_json(boundary.gradients, boundary.gradient_diagnostics)}});
  }
  return list;
}

json to_json(const EpochMetrics& metrics) {
  json stages = json::array();
  for (const auto& [name, forward, backward] : metrics.stages) {
    stages.push_back({{"name", name}, {"forward_seconds", forward}, {"backward_seconds", backward}});
  }
  json all = {{"epoch", metrics.epoch},
              {"steps", metrics.steps},
              {"train_loss", metrics.train.loss},
              {"train_accuracy", metrics.train.accuracy},
              {"test", to_json(metrics.test)},
              {"lr", metrics.lr},
              {"seconds", metrics.seconds},
              {"samples_per_second", metrics.samples_per_second},
              {"evaluation_seconds", metrics.evaluation_seconds},
              {"data_wait_seconds", metrics.data_wait_seconds},
              {"bubble_share", metrics.bubble_share},
              {"boundaries", to_json(metrics.boundaries)},
              {"stages", std::move(stages)}};
  if (metrics.tokens_per_second) all["tokens_per_second"] = *metrics.tokens_per_second;
  return all;
}

std::vector<BoundaryTraffic> boundary_traffic_of(const json& json) {
  std::vector<BoundaryTraffic> boundaries;
  for (const auto& item : json) {
    const auto& activations = item.at("activations");
    const auto& gradients = item.at("gradients");
    boundaries.push_back({item.at("name"), traffic_in(activations), traffic_in(gradients),
                          diagnostics_in(activations), diagnostics_in(gradients)});
  }
  return boundaries;
}

Score score_in(const json& json) {
  Score score{json.at("loss"), json.at("accuracy")};
  if (json.contains("perplexity")) score.perplexity = std::exp(score.loss);
  return score;
}

EpochMetrics epoch_metrics_of(const json& json) {
  const auto& test = json.at("test");
  std::vector<StageSeconds> stages;
  for (const auto& stage : json.value("stages", nlohmann::json::array())) {  // older runs have none
    stages.push_back({stage.at("name"), stage.at("forward_seconds"), stage.at("backward_seconds")});
  }
  return {.epoch = json.at("epoch"),
          .steps = json.at("steps"),
          .train = {json.at("train_loss"), json.at("train_accuracy")},
          .test = {score_in(test.at("off")), score_in(test.at("on")), test.at("samples")},
          .lr = json.at("lr"),
          .seconds = json.at("seconds"),
          .samples_per_second = json.at("samples_per_second"),
          .tokens_per_second = json.contains("tokens_per_second")
                                   ? std::optional(json.at("tokens_per_second").get<double>())
                                   : std::nullopt,
          .evaluation_seconds = json.at("evaluation_seconds"),
          .data_wait_seconds = json.at("data_wait_seconds"),
          .bubble_share = json.value("bubble_share", 0.0),
          .boundaries = boundary_traffic_of(json.at("boundaries")),
          .stages = std::move(stages)};
}

EpochMetrics parse_epoch(std::string_view line, const std::string& name) {
  const json parsed = parse_json(line, name);
  try {
    return epoch_metrics_of(parsed);
  } catch (const json::exception&) {
    throw InputError("{}: is not what a run writes", name);
  }
}

}  // namespace strait
