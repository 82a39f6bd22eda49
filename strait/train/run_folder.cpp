#include "strait/train/run_folder.h"

#include <ATen/Parallel.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "strait/base/files.h"
#include "strait/train/model_file.h"
#include "strait/train/runtime.h"

namespace strait {
namespace {

using nlohmann::json;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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

RunFolder::RunFolder(std::filesystem::path path, Identity identity, bool replace)
    : path_(std::move(path)), identity_(std::move(identity)) {
  if (std::filesystem::exists(path_ / "metrics.jsonl") && !replace) {
    throw InputError("{}: holds a run already; choose another --out, or replace it with --overwrite",
                     path_.string());
  }
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) throw InputError("{}: cannot make the folder: {}", path_.string(), error.message());
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) std::filesystem::remove(entry);
  }
  std::filesystem::remove(path_ / "model.safetensors");
  replace_file(path_ / "config.toml", identity_.config);
  metrics_.open(path_ / "metrics.jsonl", std::ios::trunc);
  if (!metrics_) throw Error("{}: cannot be written", (path_ / "metrics.jsonl").string());
  events_ = std::make_unique<TensorboardWriter>(path_);
  set_status(RunStatus::running);
}

void RunFolder::add_epoch(const EpochMetrics& metrics) {
  metrics_ << to_json(metrics).dump() << std::endl;
  if (!metrics_) throw Error("{}: cannot be written", (path_ / "metrics.jsonl").string());
  const auto improve = [&](std::optional<Best>& best, const Score& score) {
    if (!best || score.accuracy > best->accuracy) best = Best{metrics.epoch, score.accuracy, score.loss};
  };
  improve(best_off_, metrics.test.off);
  improve(best_on_, metrics.test.on);
  last_ = metrics;
  add_scalars(metrics);
  set_status(RunStatus::running);
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
  add("lr", metrics.lr);
  add("samples_per_second", metrics.samples_per_second);
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
              {"epochs_done", last_ ? last_->epoch + 1 : 0},
              {"updated", now()}};
  if (!error.empty()) out["error"] = error;
  const auto best = [](const Best& best) {
    return json{{"epoch", best.epoch}, {"accuracy", best.accuracy}, {"loss", best.loss}};
  };
  if (best_off_) out["best"] = {{"off", best(*best_off_)}, {"on", best(*best_on_)}};
  if (last_) {
    out["last"] = {{"epoch", last_->epoch}, {"train_loss", last_->train.loss}, {"test", to_json(last_->test)}};
  }
  replace_file(path_ / "status.json", out.dump(2) + "\n");
}

}  // namespace strait
