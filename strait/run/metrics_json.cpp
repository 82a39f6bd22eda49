#include "strait/run/metrics_json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

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
          {"gain", diagnostics.gain},
          {"mean_error", diagnostics.mean_error},
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

json metric_json(double value) { return std::isfinite(value) ? json(value) : json(); }

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

constexpr const char* kRelayed = "relayed";
constexpr uint64_t kMostOfInt = std::numeric_limits<int>::max();
constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

json chosen_codec_json(const ChosenCodec& chosen) {
  json all = {{"codec", chosen.codec},
              {"relative_error", number_or_null(chosen.relative_error)},
              {"bytes_per_second", number_or_null(chosen.link.bytes_per_second)},
              {"latency_seconds", chosen.link.latency_seconds}};
  if (!chosen.cosines.empty()) all["cosines"] = chosen.cosines;
  return all;
}

ChosenCodec chosen_codec_in(const JsonReader& from) {
  std::map<std::string, double> cosines;
  if (from.has("cosines")) {
    const JsonReader all = from.at("cosines");
    for (const auto& codec : all.keys()) cosines[codec] = all.number(codec);
  }
  return {.codec = from.text("codec"),
          .relative_error = from.optional_number("relative_error"),
          .cosines = std::move(cosines),
          .link = {.bytes_per_second = from.optional_number("bytes_per_second"),
                   .latency_seconds = from.number("latency_seconds")}};
}

Traffic traffic_in(const JsonReader& from) {
  return {.messages = from.whole_or("messages", 0),
          .raw_bytes = from.whole("raw_bytes"),
          .wire_bytes = from.whole("wire_bytes"),
          .encode_seconds = from.optional_number("encode_seconds").value_or(0),
          .decode_seconds = from.optional_number("decode_seconds").value_or(0)};
}

std::optional<Diagnostics> diagnostics_in(const JsonReader& traffic) {
  if (!traffic.has("diagnostics")) return std::nullopt;
  const JsonReader from = traffic.at("diagnostics");
  Diagnostics diagnostics{.messages = from.whole("messages"),
                          .zeros = from.optional_number("zeros").value_or(kNotMeasured),
                          .quantiles = {},
                          .relative_error = from.optional_number("relative_error").value_or(kNotMeasured),
                          .gain = from.optional_number("gain").value_or(kNotMeasured),
                          .mean_error = from.optional_number("mean_error").value_or(kNotMeasured),
                          .cosine = from.optional_number("cosine"),
                          .residual_norm = from.optional_number("residual_norm")};
  for (size_t i = 0; i < Diagnostics::kShares.size(); ++i) {
    diagnostics.quantiles[i] = from.at("quantiles").optional_number(share_name(i)).value_or(kNotMeasured);
  }
  return diagnostics;
}

/// What null says of a metric: that it was beyond all numbers where it is a function of the loss, else that it
/// is not known.
double without_number(const std::string& name) {
  const Metric* metric = find_metric(name);
  return metric != nullptr && metric->rises_with_loss ? std::numeric_limits<double>::infinity() : kNotMeasured;
}

/// The numbers of the keys that begin with `prefix`, which the loss has too.
Score score_in(const JsonReader& from, const std::string& prefix = "") {
  Score score{.loss = from.optional_number(prefix + "loss").value_or(kNotMeasured)};
  for (const auto& key : from.keys()) {
    if (!key.starts_with(prefix) || key == prefix + "loss") continue;
    const std::string name = key.substr(prefix.size());
    score.metrics[name] = from.optional_number(key).value_or(without_number(name));
  }
  return score;
}

EvaluationMode named_mode(const JsonReader& test) {
  if (!test.has("evaluation")) return EvaluationMode::plain;  // an older run
  const EvaluationMode mode = evaluation_mode(test.text("evaluation"));
  if (mode == EvaluationMode::off) test.at("evaluation").fail("\"plain\", \"frozen\" or \"live\"");
  return mode;
}

std::vector<StageSeconds> stages_in(const JsonReader& stages) {
  std::vector<StageSeconds> all;
  for (size_t i = 0; i < stages.size(); ++i) {
    const JsonReader stage = stages.at(i);
    all.push_back({stage.text("name"), stage.number("forward_seconds"), stage.number("backward_seconds")});
  }
  return all;
}

}  // namespace

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

json to_json(const std::vector<LinkMetrics>& links) {
  json list = json::array();
  for (const auto& [rank, peer, relayed, outages, seconds] : links) {
    list.push_back({{"rank", rank},
                    {"peer", peer},
                    {"route", relayed ? kRelayed : "direct"},
                    {"outages", outages},
                    {"seconds", seconds}});
  }
  return list;
}

std::string to_line(const StepMetrics& metrics) {
  json all = {{"step", metrics.step},
              {"epoch", metrics.epoch},
              {"steps", metrics.steps},
              {"lr", metrics.lr},
              {"seconds", metrics.seconds},
              {"samples_per_second", metrics.samples_per_second},
              {"raw_bytes", metrics.raw_bytes},
              {"wire_bytes", metrics.wire_bytes},
              {"bubble_share", metrics.bubble_share}};
  put_training_score(metrics.train, all);
  return all.dump();
}

StepMetrics parse_step(std::string_view line, const std::string& name) {
  const JsonText parsed(line, name);
  const JsonReader& from = parsed.root();
  return {.step = from.count("step"),
          .epoch = static_cast<int>(from.count("epoch", kMostOfInt)),
          .steps = static_cast<int64_t>(from.whole("steps")),
          .train = score_in(from, std::string(kOfTraining)),
          .lr = from.number("lr"),
          .seconds = from.number("seconds"),
          .samples_per_second = from.optional_number("samples_per_second").value_or(0),
          .raw_bytes = from.number("raw_bytes"),
          .wire_bytes = from.number("wire_bytes"),
          .bubble_share = from.number("bubble_share")};
}

json to_json(const std::vector<NetworkMetrics>& networks) {
  json all;
  for (const auto& [name, step_seconds, seconds] : networks) {
    all[name] = {{"step_seconds", step_seconds}, {"seconds", seconds}};
  }
  return all;
}

json to_json(const std::vector<CodecChoice>& choices) {
  json list = json::array();
  for (const auto& choice : choices) {
    json boundaries = json::array();
    for (const auto& [boundary, activations, gradients] : choice.boundaries) {
      boundaries.push_back({{"name", boundary},
                            {"activations", chosen_codec_json(activations)},
                            {"gradients", chosen_codec_json(gradients)}});
    }
    json each = {{"step", choice.step}, {"boundaries", std::move(boundaries)}};
    if (choice.step_seconds) each["step_seconds"] = *choice.step_seconds;
    if (choice.step_factor) each["step_factor"] = *choice.step_factor;
    if (choice.watches_gradients) each["watches_gradients"] = true;
    list.push_back(std::move(each));
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
              {"lr", metrics.lr},
              {"seconds", metrics.seconds},
              {"samples_per_second", metrics.samples_per_second},
              {"evaluation_seconds", metrics.evaluation_seconds},
              {"data_wait_seconds", metrics.data_wait_seconds},
              {"bubble_share", metrics.bubble_share},
              {"boundaries", to_json(metrics.boundaries)},
              {"stages", std::move(stages)}};
  put_training_score(metrics.train, all);
  if (metrics.test) all["test"] = to_json(*metrics.test);
  if (metrics.tokens_per_second) all["tokens_per_second"] = *metrics.tokens_per_second;
  if (!metrics.evaluations.empty()) all["evaluations"] = to_json(metrics.evaluations);
  if (!metrics.links.empty()) all["links"] = to_json(metrics.links);
  if (!metrics.networks.empty()) all["networks"] = to_json(metrics.networks);
  if (!metrics.choices.empty()) all["choices"] = to_json(metrics.choices);
  return all;
}

std::string to_line(const EpochMetrics& metrics) { return to_json(metrics).dump(); }

std::vector<BoundaryTraffic> boundary_traffic_in(const JsonReader& from) {
  std::vector<BoundaryTraffic> boundaries;
  for (size_t i = 0; i < from.size(); ++i) {
    const JsonReader boundary = from.at(i);
    const JsonReader activations = boundary.at("activations");
    const JsonReader gradients = boundary.at("gradients");
    boundaries.push_back({boundary.text("name"), traffic_in(activations), traffic_in(gradients),
                          diagnostics_in(activations), diagnostics_in(gradients)});
  }
  return boundaries;
}

Evaluation evaluation_in(const JsonReader& from) {
  Evaluation evaluation{.off = score_in(from.at("off")),
                        .on = score_in(from.at("on")),
                        .samples = static_cast<int64_t>(from.whole_or("samples", 0)),
                        .named = named_mode(from)};
  for (const auto mode : {EvaluationMode::plain, EvaluationMode::frozen, EvaluationMode::live}) {
    const std::string name(to_string(mode));
    if (from.has(name)) evaluation.modes[mode] = score_in(from.at(name));
  }
  if (evaluation.modes.empty()) evaluation.modes[evaluation.named] = evaluation.on;  // an older run
  return evaluation;
}

std::vector<StepEvaluation> step_evaluations_in(const JsonReader& from) {
  std::vector<StepEvaluation> evaluations;
  for (size_t i = 0; i < from.size(); ++i) {
    evaluations.push_back({from.at(i).count("step"), evaluation_in(from.at(i).at("test"))});
  }
  return evaluations;
}

std::vector<LinkMetrics> links_in(const JsonReader& from) {
  std::vector<LinkMetrics> links;
  for (size_t i = 0; i < from.size(); ++i) {
    const JsonReader link = from.at(i);
    links.push_back({.rank = static_cast<int>(link.count("rank", kMostOfInt)),
                     .peer = static_cast<int>(link.count("peer", kMostOfInt)),
                     .relayed = link.text("route") == kRelayed,
                     .outages = static_cast<int64_t>(link.whole("outages")),
                     .seconds = link.number("seconds")});
  }
  return links;
}

/// An object, or as runs of 0.1.0+b14293ba4726 and before wrote it, a list of objects that have their names.
std::vector<NetworkMetrics> networks_in(const JsonReader& from) {
  std::vector<NetworkMetrics> networks;
  const auto add = [&](const std::string& name, const JsonReader& network) {
    networks.push_back({name, network.number("step_seconds"), network.number("seconds")});
  };
  if (from.is_array()) {
    for (size_t i = 0; i < from.size(); ++i) add(from.at(i).text("name"), from.at(i));
  } else {
    for (const auto& name : from.keys()) add(name, from.at(name));
  }
  return networks;
}

std::vector<CodecChoice> choices_in(const JsonReader& from) {
  std::vector<CodecChoice> choices;
  for (size_t i = 0; i < from.size(); ++i) {
    const JsonReader choice = from.at(i);
    const JsonReader boundaries = choice.at("boundaries");
    auto& found = choices.emplace_back();
    found.step = choice.count("step");
    found.step_seconds = choice.optional_number("step_seconds");
    found.step_factor = choice.optional_number("step_factor");
    found.watches_gradients = choice.has("watches_gradients");
    for (size_t j = 0; j < boundaries.size(); ++j) {
      const JsonReader boundary = boundaries.at(j);
      found.boundaries.push_back({boundary.text("name"), chosen_codec_in(boundary.at("activations")),
                                  chosen_codec_in(boundary.at("gradients"))});
    }
  }
  return choices;
}

EpochMetrics epoch_in(const JsonReader& line) {
  const auto number_if_any = [&](const char* key) { return line.optional_number(key).value_or(0); };
  line.at("train_loss");
  EpochMetrics epoch{.epoch = static_cast<int>(line.count("epoch", kMostOfInt)),
                     .steps = static_cast<int64_t>(line.whole("steps")),
                     .train = score_in(line, std::string(kOfTraining)),
                     .test = {},
                     .lr = number_if_any("lr"),
                     .seconds = line.number("seconds"),
                     .samples_per_second = number_if_any("samples_per_second"),
                     .tokens_per_second = line.optional_number("tokens_per_second"),
                     .evaluation_seconds = line.number("evaluation_seconds"),
                     .data_wait_seconds = number_if_any("data_wait_seconds"),
                     .bubble_share = number_if_any("bubble_share"),
                     .boundaries = boundary_traffic_in(line.at("boundaries")),
                     .stages = {}};
  if (line.has("test")) epoch.test = evaluation_in(line.at("test"));
  if (line.has("stages")) epoch.stages = stages_in(line.at("stages"));
  if (line.has("links")) epoch.links = links_in(line.at("links"));
  if (line.has("networks")) epoch.networks = networks_in(line.at("networks"));
  if (line.has("choices")) epoch.choices = choices_in(line.at("choices"));
  if (line.has("evaluations")) epoch.evaluations = step_evaluations_in(line.at("evaluations"));
  return epoch;
}

EpochMetrics parse_epoch(std::string_view line, const std::string& name) {
  const JsonText parsed(line, name);
  return epoch_in(parsed.root());
}

}  // namespace strait
