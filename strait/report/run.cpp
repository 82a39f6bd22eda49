#include "strait/report/run.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "strait/base/files.h"
#include "strait/run/reader.h"

namespace strait::report {
namespace {

using std::filesystem::path;

/// Without numbers that were not measured or are not finite.
void add_number(const std::string& name, double value, std::map<std::string, double>& to) {
  if (std::isfinite(value)) to.emplace(name, value);
}

Scores scores_of(const Score& score) {
  Scores scores;
  add_number("loss", score.loss, scores);
  for (const auto& [name, value] : score.metrics) add_number(name, value, scores);
  return scores;
}

std::map<std::string, double> numbers_of(const Diagnostics& diagnostics) {
  std::map<std::string, double> numbers;
  add_number("zeros", diagnostics.zeros, numbers);
  add_number("relative_error", diagnostics.relative_error, numbers);
  add_number("gain", diagnostics.gain, numbers);
  add_number("mean_error", diagnostics.mean_error, numbers);
  if (diagnostics.cosine) add_number("cosine", *diagnostics.cosine, numbers);
  if (diagnostics.residual_norm) add_number("residual_norm", *diagnostics.residual_norm, numbers);
  for (size_t i = 0; i < Diagnostics::kShares.size(); ++i) {
    add_number(fmt::format("quantile {}", Diagnostics::kShares[i]), diagnostics.quantiles[i], numbers);
  }
  return numbers;
}

Traffic traffic_of(const strait::Traffic& traffic, const std::optional<Diagnostics>& diagnostics) {
  return {static_cast<double>(traffic.raw_bytes), static_cast<double>(traffic.wire_bytes),
          diagnostics ? numbers_of(*diagnostics) : std::map<std::string, double>()};
}

void take_scores(const Evaluation& test, Epoch& epoch) {
  epoch.off = scores_of(test.off);
  epoch.on = scores_of(test.on);
  epoch.evaluation = to_string(test.named);
  const auto in_mode = [&](EvaluationMode mode) {
    const auto found = test.modes.find(mode);
    return found == test.modes.end() ? Scores() : scores_of(found->second);
  };
  epoch.plain = in_mode(EvaluationMode::plain);
  epoch.frozen = in_mode(EvaluationMode::frozen);
  epoch.live = in_mode(EvaluationMode::live);
}

Epoch epoch_of(const EpochMetrics& metrics) {
  Epoch epoch;
  epoch.number = metrics.epoch;
  epoch.steps = static_cast<double>(metrics.steps);
  epoch.seconds = metrics.seconds + metrics.evaluation_seconds;
  if (std::isfinite(metrics.train.loss)) epoch.train_loss = metrics.train.loss;
  if (metrics.test) take_scores(*metrics.test, epoch);
  for (const auto& [step, test] : metrics.evaluations) {
    epoch.evaluations.push_back({static_cast<int64_t>(step), scores_of(test.off), scores_of(test.on)});
  }
  for (const auto& boundary : metrics.boundaries) {
    epoch.boundaries.push_back({boundary.name,
                                traffic_of(boundary.activations, boundary.activation_diagnostics),
                                traffic_of(boundary.gradients, boundary.gradient_diagnostics)});
  }
  return epoch;
}

}  // namespace

bool is_run(const path& folder) { return has_file(folder / "status.json"); }

Run read_run(const path& folder) {
  return parse_run(folder, {.status = read_whole(folder / "status.json", kJsonBytesMost),
                            .config = read_whole(folder / "config.toml", kConfigBytesMost),
                            .metrics = read_whole(folder / "metrics.jsonl", kMetricsBytesMost)});
}

Run parse_run(const path& folder, RunTexts texts) {
  const StatusRecord status = parse_status(texts.status, (folder / "status.json").string());
  Run run;
  run.name = status.name;
  run.path = folder;
  run.folder = folder.filename().string();
  run.seed = status.seed;
  run.status = status.status;
  run.error = status.error;
  run.config_hash = status.config_hash;
  run.config = std::move(texts.config);
  run.code_version = status.code_version;
  run.machine = status.machine;
  run.updated = status.updated;
  run.epochs_planned = status.epochs;
  for (const auto& epoch : parse_epochs(texts.metrics, folder / "metrics.jsonl", run.status == Status::done)) {
    run.epochs.push_back(epoch_of(epoch));
  }
  return run;
}

}  // namespace strait::report
