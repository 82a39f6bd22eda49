#include "strait/train/run_folder.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "strait/base/files.h"
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

struct Line {
  std::string text;
  EpochMetrics metrics;
};

/// The lines of the epochs from `first` to `end`, without the last one.
std::vector<Line> read_metrics(const std::filesystem::path& path, int first, int end) {
  std::vector<Line> lines;
  if (first >= end) return lines;
  const auto texts = split(read_whole(path, kMetricsBytesMost), '\n');
  for (int epoch = first; epoch < end; ++epoch) {
    const auto number = static_cast<size_t>(epoch - first);
    const bool there = number + 1 < texts.size();  // behind the last end of a line there is none
    if (there) {
      const auto& text = texts[number];
      lines.push_back({text, parse_epoch(text, fmt::format("{}:{}", path.string(), number + 1))});
    }
    if (!there || lines.back().metrics.epoch != epoch) {
      throw InputError("{}: has no line for epoch {}, which the checkpoint of epoch {} follows", path.string(),
                       epoch, end);
    }
  }
  return lines;
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

RunFolder::RunFolder(std::filesystem::path path, Identity identity, Start start)
    : path_(std::move(path)), identity_(std::move(identity)) {
  CheckpointFolder checkpoints(path_ / "checkpoint", {});
  const bool taken = std::filesystem::exists(path_ / "metrics.jsonl") || !checkpoints.entries().empty();
  if (taken && start == Start::fresh) {
    throw InputError(
        "{}: holds a run already; go on with it with --resume, choose another --out, or replace it with "
        "--overwrite",
        path_.string());
  }
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) throw InputError("{}: cannot make the folder: {}", path_.string(), error.message());
  checkpoints.clear();  // first: they belong to the configuration that goes
  std::filesystem::remove(path_ / "model.safetensors");
  begin("");
}

RunFolder::RunFolder(std::filesystem::path path, Identity identity, int epoch)
    : path_(std::move(path)), identity_(std::move(identity)) {
  std::string kept;
  for (auto& line : read_metrics(path_ / "metrics.jsonl", identity_.first_epoch, epoch)) {
    kept += line.text + "\n";
    epochs_.push_back(std::move(line.metrics));
  }
  begin(kept);
}

// The events are written anew: TensorBoard would show the epochs that are cut off beside those to come.
void RunFolder::begin(const std::string& kept_lines) {
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) std::filesystem::remove(entry);
  }
  replace_file(path_ / "config.toml", identity_.config);
  replace_file(path_ / "metrics.jsonl", kept_lines);
  metrics_.open(path_ / "metrics.jsonl", std::ios::app);
  if (!metrics_) throw Error("{}: cannot be written", (path_ / "metrics.jsonl").string());
  events_ = std::make_unique<TensorboardWriter>(path_);
  for (const auto& metrics : epochs_) take_in(metrics);
  set_status(RunStatus::running);
}

void RunFolder::add_epoch(const EpochMetrics& metrics) {
  metrics_ << to_json(metrics).dump() << std::endl;
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
  add("train/accuracy", metrics.train.accuracy);
  add("test_off/loss", metrics.test.off.loss);
  add("test_off/accuracy", metrics.test.off.accuracy);
  add("test_on/loss", metrics.test.on.loss);
  add("test_on/accuracy", metrics.test.on.accuracy);
  if (metrics.test.off.perplexity) add("test_off/perplexity", *metrics.test.off.perplexity);
  if (metrics.test.on.perplexity) add("test_on/perplexity", *metrics.test.on.perplexity);
  add("lr", metrics.lr);
  add("samples_per_second", metrics.samples_per_second);
  if (metrics.tokens_per_second) add("tokens_per_second", *metrics.tokens_per_second);
  for (const auto& boundary : metrics.boundaries) {
    add("wire_bytes/" + boundary.name + "/activations", static_cast<double>(boundary.activations.wire_bytes));
    add("wire_bytes/" + boundary.name + "/gradients", static_cast<double>(boundary.gradients.wire_bytes));
  }
  events_->flush();
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
  if (best_off_) out["best"] = {{"off", best(*best_off_)}, {"on", best(*best_on_)}};
  if (!epochs_.empty()) {
    const EpochMetrics& last = epochs_.back();
    out["last"] = {{"epoch", last.epoch}, {"train_loss", last.train.loss}, {"test", to_json(last.test)}};
  }
  replace_file(path_ / "status.json", out.dump(2) + "\n");
}

}  // namespace strait
