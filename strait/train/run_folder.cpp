#include "strait/train/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/checkpoint/checkpoint_folder.h"
#include "strait/checkpoint/model_file.h"
#include "strait/run/reader.h"

namespace strait {
namespace {

void add_scores(TensorboardWriter& events, const std::string& kind, int64_t step, const Evaluation& test) {
  const auto add = [&](EvaluationMode mode, const Score& score) {
    const std::string group = fmt::format("{}_{}/", kind, to_string(mode));
    events.add_scalar(group + "loss", step, static_cast<float>(score.loss));
    for (const auto& [name, value] : score.metrics) {
      events.add_scalar(group + name, step, static_cast<float>(value));
    }
  };
  add(EvaluationMode::off, test.off);
  for (const auto& [mode, score] : test.modes) add(mode, score);
}

void add_scalars(TensorboardWriter& events, const EpochMetrics& metrics) {
  const auto add = [&](const std::string& tag, double value) {
    events.add_scalar(tag, metrics.epoch, static_cast<float>(value));
  };
  add("train/loss", metrics.train.loss);
  for (const auto& [name, value] : metrics.train.metrics) {
    const Metric* metric = find_metric(name);
    if (metric == nullptr || !metric->rises_with_loss) add("train/" + name, value);
  }
  if (metrics.test) add_scores(events, "test", metrics.epoch, *metrics.test);
  for (const auto& [step, test] : metrics.evaluations) {
    add_scores(events, "test_by_step", static_cast<int64_t>(step), test);
  }
  add("lr", metrics.lr);
  add("samples_per_second", metrics.samples_per_second);
  if (metrics.tokens_per_second) add("tokens_per_second", *metrics.tokens_per_second);
  for (const auto& boundary : metrics.boundaries) {
    add("wire_bytes/" + boundary.name + "/activations", static_cast<double>(boundary.activations.wire_bytes));
    add("wire_bytes/" + boundary.name + "/gradients", static_cast<double>(boundary.gradients.wire_bytes));
  }
  events.flush();
}

void add_scalars(TensorboardWriter& events, const StepMetrics& metrics) {
  const auto add = [&](const std::string& tag, double value) {
    events.add_scalar("by_step/" + tag, static_cast<int64_t>(metrics.step), static_cast<float>(value));
  };
  add("loss", metrics.train.loss);
  add("lr", metrics.lr);
  add("samples_per_second", metrics.samples_per_second);
  add("wire_bytes", metrics.wire_bytes);
  add("bubble_share", metrics.bubble_share);
  events.flush();
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  const auto has = [&](const char* name) { return is_there(folder / name); };
  return has("status.json") || has("metrics.jsonl") || has("config.toml");
}

void check_is_free(const std::filesystem::path& folder) {
  const auto homes = CheckpointFolder::homes_in(folder / "checkpoint");
  const bool taken = is_there(folder / "metrics.jsonl") || std::ranges::any_of(homes, [](const auto& home) {
                       return !CheckpointFolder(home.path, {}).entries().empty();
                     });
  if (taken) {
    throw InputError(
        "{}: holds a run already; resume it with --resume, choose another --out, or replace it with "
        "--overwrite",
        folder.string());
  }
  check_holds_no_network(folder);
}

void check_holds_no_network(const std::filesystem::path& folder) {
  for (const char* name : kNetworkFiles) {
    if (is_there(folder / name)) {
      throw InputError(
          "{}: holds {}, which a run may replace; choose another --out, or let it with --overwrite",
          folder.string(), name);
    }
  }
}

// First what says that the run is done, then the checkpoints: they belong to the configuration that goes.
void clear_run(const std::filesystem::path& folder) {
  std::filesystem::remove(folder / "status.json");
  for (const auto& home : CheckpointFolder::homes_in(folder / "checkpoint")) {
    CheckpointFolder(home.path, {}).clear();
  }
  std::filesystem::remove(folder / "steps.jsonl");
  for (const char* name : kNetworkFiles) std::filesystem::remove(folder / name);
}

RunFolder::RunFolder(const std::filesystem::path& path, RunWriter::Identity identity,
                     const std::vector<std::string>& lines, uint64_t step)
    : writer_(path, std::move(identity), lines, step) {
  // The events are written anew: TensorBoard would show the epochs that are cut off beside those to come.
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) std::filesystem::remove(entry);
  }
  events_ = std::make_unique<TensorboardWriter>(path);
  for (const auto& metrics : writer_.epochs()) add_scalars(*events_, metrics);
  for (const auto& metrics : read_steps(path)) add_scalars(*events_, metrics);
}

void RunFolder::add_epoch(const EpochMetrics& metrics) {
  writer_.add_epoch(metrics);
  add_scalars(*events_, metrics);
}

void RunFolder::add_steps(const StepMetrics& metrics) {
  writer_.add_steps(metrics);
  add_scalars(*events_, metrics);
}

void RunFolder::save_model(const Model& model) {
  strait::save_model(writer_.path() / "model.safetensors", model);
}

}  // namespace strait
