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

bool has_checkpoints(const std::filesystem::path& folder) {
  return std::ranges::any_of(CheckpointFolder::homes_in(folder / "checkpoint"), [](const auto& home) {
    return !CheckpointFolder(home.path, {}).entries().empty();
  });
}

/// The names of TensorBoard's files in a folder; none where there is no folder.
std::vector<std::string> event_files(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (!has_folder(folder)) return names;
  std::error_code error;
  for (std::filesystem::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    std::string name = item->path().filename().string();
    if (name.starts_with("events.out.tfevents.")) names.push_back(std::move(name));
  }
  if (error) throw InputError("{}: cannot be read: {}", folder.string(), error.message());
  return names;
}

[[noreturn]] void refuse_to_replace(const std::filesystem::path& folder, const std::string& name) {
  throw InputError("{}: holds {}, which a run may replace; choose another --out, or let it with --overwrite",
                   folder.string(), name);
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  return has_checkpoints(folder) || is_there(folder / "status.json") || is_there(folder / "metrics.jsonl");
}

bool holds_results(const std::filesystem::path& folder) {
  const auto metrics = folder / "metrics.jsonl";
  return has_checkpoints(folder) || (has_file(metrics) && InputFile(metrics).size() > 0);
}

void check_is_free(const std::filesystem::path& folder) {
  if (holds_run(folder)) {
    throw InputError(
        "{}: holds a run already; resume it with --resume, choose another --out, or replace it with "
        "--overwrite",
        folder.string());
  }
  check_replaces_nothing(folder);
  if (is_there(folder / "config.toml")) refuse_to_replace(folder, "config.toml");
}

void check_replaces_nothing(const std::filesystem::path& folder) {
  for (const char* name : kNetworkFiles) {
    if (is_there(folder / name)) refuse_to_replace(folder, name);
  }
  if (is_there(folder / "steps.jsonl")) refuse_to_replace(folder, "steps.jsonl");
  const auto events = event_files(folder);
  if (!events.empty()) refuse_to_replace(folder, events.front());
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

void clear_unfinished(const std::filesystem::path& folder) {
  for (const char* name : {"config.toml", "metrics.jsonl", "steps.jsonl", "status.json"}) {
    remove_unfinished(folder / name);
  }
  for (const char* name : kNetworkFiles) remove_unfinished(folder / name);
}

RunFolder::RunFolder(const std::filesystem::path& path, RunWriter::Identity identity,
                     const std::vector<std::string>& lines, uint64_t step)
    : writer_(path, std::move(identity), lines, step) {
  // The events are written anew: TensorBoard would show the epochs that are cut off beside those to come.
  for (const auto& name : event_files(path)) std::filesystem::remove(path / name);
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
