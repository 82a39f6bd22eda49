#include "strait/train/run_folder.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "strait/base/files.h"
#include "strait/base/host.h"
#include "strait/base/text.h"
#include "strait/train/checkpoint_folder.h"
#include "strait/train/model_file.h"
#include "strait/train/runtime.h"

namespace strait {
namespace {

using nlohmann::json;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace

std::string_view to_string(RunStatus status) {
  switch (status) {
    case RunStatus::running:
      return "running";
    case RunStatus::done:
      return "done";
    case RunStatus::diverged:
      return "diverged";
    case RunStatus::failed:
      return "failed";
    case RunStatus::stopped:
      return "stopped";
  }
  throw InternalError("run status {}", static_cast<int>(status));
}

void check_is_free(const std::filesystem::path& folder) {
  const auto homes = CheckpointFolder::homes_in(folder / "checkpoint");
  const bool taken =
      std::filesystem::exists(folder / "metrics.jsonl") || std::ranges::any_of(homes, [](const auto& home) {
        return !CheckpointFolder(home.path, {}).entries().empty();
      });
  if (!taken) return;
  throw InputError(
      "{}: holds a run already; resume it with --resume, choose another --out, or replace it with --overwrite",
      folder.string());
}

// First what says that the run is done, then the checkpoints: they belong to the configuration that goes.
void clear_run(const std::filesystem::path& folder) {
  std::filesystem::remove(folder / "status.json");
  for (const auto& home : CheckpointFolder::homes_in(folder / "checkpoint")) {
    CheckpointFolder(home.path, {}).clear();
  }
  std::filesystem::remove(folder / "model.safetensors");
}

bool has_metrics(const std::filesystem::path& folder, const std::vector<std::string>& lines) {
  if (lines.empty()) return true;
  const auto path = folder / "metrics.jsonl";
  return std::filesystem::exists(path) && read_whole(path).starts_with(joined(lines));
}

RunFolder::RunFolder(std::filesystem::path path, Identity identity, const std::vector<std::string>& lines)
    : path_(std::move(path)), identity_(std::move(identity)) {
  for (const auto& line : lines) epochs_.push_back(parse_epoch(line, path_.string()));
  // The events are written anew: TensorBoard would show the epochs that are cut off beside those to come.
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) std::filesystem::remove(entry);
  }
  replace_file(path_ / "config.toml", identity_.config);
  replace_file(path_ / "metrics.jsonl", joined(lines));
  metrics_.open(path_ / "metrics.jsonl", std::ios::app);
  if (!metrics_) throw Error("{}: cannot be written", (path_ / "metrics.jsonl").string());
  events_ = std::make_unique<TensorboardWriter>(path_);
  for (const auto& metrics : epochs_) take_in(metrics);
  set_status(RunStatus::running);
}

void RunFolder::add_epoch(const EpochMetrics& metrics) {
  metrics_ << to_line(metrics) << std::endl;
  if (!metrics_) throw Error("{}: cannot be written", (path_ / "metrics.jsonl").string());
  sync_to_disk(path_ / "metrics.jsonl");  // a later checkpoint counts on the line
  epochs_.push_back(metrics);
  take_in(metrics);
  set_status(RunStatus::running);
}

void RunFolder::take_in(const EpochMetrics& metrics) {
  const auto improve = [&](std::optional<Best>& best, const Score& score) {
    if (!best || is_better(score, best->score)) best = Best{metrics.epoch, score};
  };
  improve(best_off_, metrics.test.off);
  improve(best_on_, metrics.test.on);
  add_scalars(metrics);
}

void RunFolder::add_scalars(const EpochMetrics& metrics) {
  const auto add = [&](const std::string& tag, double value) {
    events_->add_scalar(tag, metrics.epoch, static_cast<float>(value));
  };
  add("train/loss", metrics.train.loss);
  for (const auto& [name, value] : metrics.train.metrics) {
    const Metric* metric = find_metric(name);
    if (metric == nullptr || !metric->rises_with_loss) add("train/" + name, value);
  }
  add_scores("test", metrics.epoch, metrics.test);
  for (const auto& [step, test] : metrics.evaluations) {
    add_scores("test_by_step", static_cast<int64_t>(step), test);
  }
  add("lr", metrics.lr);
  add("samples_per_second", metrics.samples_per_second);
  if (metrics.tokens_per_second) add("tokens_per_second", *metrics.tokens_per_second);
  for (const auto& boundary : metrics.boundaries) {
    add("wire_bytes/" + boundary.name + "/activations", static_cast<double>(boundary.activations.wire_bytes));
    add("wire_bytes/" + boundary.name + "/gradients", static_cast<double>(boundary.gradients.wire_bytes));
  }
  events_->flush();
}

void RunFolder::add_scores(const std::string& kind, int64_t step, const Evaluation& test) {
  const auto add = [&](EvaluationMode mode, const Score& score) {
    const std::string group = fmt::format("{}_{}/", kind, to_string(mode));
    events_->add_scalar(group + "loss", step, static_cast<float>(score.loss));
    for (const auto& [name, value] : score.metrics) {
      events_->add_scalar(group + name, step, static_cast<float>(value));
    }
  };
  add(EvaluationMode::off, test.off);
  for (const auto& [mode, score] : test.modes) add(mode, score);
}

void RunFolder::save_model(const Model& model) { strait::save_model(path_ / "model.safetensors", model); }

void RunFolder::set_status(RunStatus status, const std::string& error) {
  json out = {{"status", to_string(status)},
              {"name", identity_.name},
              {"seed", identity_.seed},
              {"config_hash", identity_.config_hash},
              {"code_version", code_version()},
              {"machine", machine_description()},
              {"threads", at::get_num_threads()},
              {"epochs", identity_.epochs},
              {"epochs_done", epochs_.empty() ? identity_.first_epoch : epochs_.back().epoch + 1},
              {"updated", now()}};
  if (!error.empty()) out["error"] = error;
  const auto best = [](const Best& best) {
    json all = to_json(best.score);
    all["epoch"] = best.epoch;
    return all;
  };
  if (best_off_) {
    out["best"] = {{"off", best(*best_off_)},
                   {"on", best(*best_on_)},
                   {"evaluation", to_string(epochs_.back().test.named)}};
  }
  if (!epochs_.empty()) {
    const EpochMetrics& last = epochs_.back();
    out["last"] = {{"epoch", last.epoch}, {"train_loss", last.train.loss}, {"test", to_json(last.test)}};
  }
  replace_file(path_ / "status.json", out.dump(2) + "\n");
}

}  // namespace strait
