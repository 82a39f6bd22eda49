#include "strait/train/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

json metric_json(double value) { return std::isfinite(value) ? json(value) : json(); }

double metric_in(const json& json) {
  return json.is_null() ? std::numeric_limits<double>::infinity() : json.get<double>();
}

Score score_in(const json& json) {
  Score score{.loss = json.at("loss")};
  for (const auto& [name, value] : json.items()) {
    if (name != "loss") score.metrics[name] = metric_in(value);
  }
  return score;
}

constexpr std::string_view kOfTraining = "train_";

/// The score of training stands among an epoch's other keys, without what the loss says as well.
void put_training_score(const Score& score, json& epoch) {
  for (const auto& [name, value] : score.metrics) {
    const Metric* metric = find_metric(name);
    if (metric != nullptr && metric->rises_with_loss) continue;
    epoch[std::string(kOfTraining) + name] = metric_json(value);
  }
  epoch[std::string(kOfTraining) + "loss"] = score.loss;
}

Score training_score_in(const json& epoch) {
  Score score{.loss = epoch.at(std::string(kOfTraining) + "loss")};
  for (const auto& [name, value] : epoch.items()) {
    if (!name.starts_with(kOfTraining) || name == "train_loss") continue;
    score.metrics[name.substr(kOfTraining.size())] = metric_in(value);
  }
  return score;
}

}  // namespace

double mean_loss(const StepResult& sums) { return sums.loss_sum / static_cast<double>(sums.count); }

Score score_of(const StepResult& sums, const Task& task) {
  return {mean_loss(sums), task.metrics ? task.metrics(sums) : std::map<std::string, double>()};
}

Evaluation evaluation_of(const std::map<EvaluationMode, StepResult>& sums, EvaluationMode asked,
                         const Task& task) {
  Evaluation evaluation{.off = {}, .on = {}, .samples = sums.at(EvaluationMode::off).rows};
  for (const auto& [mode, sum] : sums) evaluation.modes[mode] = score_of(sum, task);
  evaluation.off = evaluation.modes.extract(EvaluationMode::off).mapped();
  evaluation.named = asked;
  evaluation.on = evaluation.modes.at(evaluation.modes.contains(asked) ? asked : EvaluationMode::plain);
  return evaluation;
}

const Metric* judge_of(const Score& score) {
  for (const Metric& metric : all_metrics()) {
    if (score.metrics.contains(std::string(metric.name))) return &metric;
  }
  return nullptr;
}

bool is_better(const Score& score, const Score& than) {
  const Metric* judge = judge_of(score);
  if (judge == nullptr || judge->rises_with_loss) return score.loss < than.loss;
  return judge->higher_is_better ? score.at(*judge) > than.at(*judge) : score.at(*judge) < than.at(*judge);
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

void add_times(TimesOfStages& sum, const TimesOfStages& part) {
  for (const auto& [stage, times] : part) {
    StageTimes& all = sum[stage];
    all.forward_seconds += times.forward_seconds;
    all.backward_seconds += times.backward_seconds;
    all.micro_batches += times.micro_batches;
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
  json all = {{"loss", score.loss}};
  for (const auto& [name, value] : score.metrics) all[name] = metric_json(value);
  return all;
}

json to_json(const Evaluation& evaluation) {
  json all = {{"off", to_json(evaluation.off)},
              {"on", to_json(evaluation.on)},
              {"evaluation", to_string(evaluation.named)},
              {"samples", evaluation.samples}};
  for (const auto& [mode, score] : evaluation.modes) all[std::string(to_string(mode))] = to_json(score);
  return all;
}

json to_json(const std::vector<StepEvaluation>& evaluations) {
  json list = json::array();
  for (const auto& [step, test] : evaluations) list.push_back({{"step", step}, {"test", to_json(test)}});
  return list;
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

json to_json(const TimesOfStages& stages) {
  json list = json::array();
  for (const auto& [stage, times] : stages) {
    list.push_back(
        {stage.first, stage.second, times.forward_seconds, times.backward_seconds, times.micro_batches});
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
              {"test", to_json(metrics.test)},
              {"lr", metrics.lr},
              {"seconds", metrics.seconds},
              {"samples_per_second", metrics.samples_per_second},
              {"evaluation_seconds", metrics.evaluation_seconds},
              {"data_wait_seconds", metrics.data_wait_seconds},
              {"bubble_share", metrics.bubble_share},
              {"boundaries", to_json(metrics.boundaries)},
              {"stages", std::move(stages)}};
  put_training_score(metrics.train, all);
  if (metrics.tokens_per_second) all["tokens_per_second"] = *metrics.tokens_per_second;
  if (!metrics.evaluations.empty()) all["evaluations"] = to_json(metrics.evaluations);
  return all;
}

std::string to_line(const EpochMetrics& metrics) { return to_json(metrics).dump(); }

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

Evaluation evaluation_in(const json& json) {
  Evaluation evaluation{.off = score_in(json.at("off")),
                        .on = score_in(json.at("on")),
                        .samples = json.at("samples"),
                        .named = evaluation_mode(json.value("evaluation", "plain"))};
  for (const auto mode : {EvaluationMode::plain, EvaluationMode::frozen, EvaluationMode::live}) {
    const std::string name(to_string(mode));
    if (json.contains(name)) evaluation.modes[mode] = score_in(json.at(name));
  }
  if (evaluation.modes.empty()) evaluation.modes[evaluation.named] = evaluation.on;  // an older run
  return evaluation;
}

std::vector<StepEvaluation> step_evaluations_in(const json& json) {
  std::vector<StepEvaluation> evaluations;
  for (const auto& item : json) evaluations.push_back({item.at("step"), evaluation_in(item.at("test"))});
  return evaluations;
}

TimesOfStages stage_times_of(const json& json) {
  TimesOfStages stages;
  for (const auto& stage : json) stages[{stage.at(0), stage.at(1)}] = {stage.at(2), stage.at(3), stage.at(4)};
  return stages;
}

EpochMetrics epoch_metrics_of(const json& json) {
  std::vector<StageSeconds> stages;
  for (const auto& stage : json.value("stages", nlohmann::json::array())) {  // older runs have none
    stages.push_back({stage.at("name"), stage.at("forward_seconds"), stage.at("backward_seconds")});
  }
  return {.epoch = json.at("epoch"),
          .steps = json.at("steps"),
          .train = training_score_in(json),
          .test = evaluation_in(json.at("test")),
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
          .stages = std::move(stages),
          .evaluations = step_evaluations_in(json.value("evaluations", nlohmann::json::array()))};
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
