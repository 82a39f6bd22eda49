#include "strait/run/writer.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/host.h"
#include "strait/run/metrics_json.h"

namespace strait {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The step of a line of steps.jsonl; nothing where it is none.
std::optional<uint64_t> step_of(const std::string& line) {
  try {
    return parse_step(line, "").step;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// Leaves the lines of steps up to `step`. A line that a crash has left unreadable does not keep the run from
/// going on: it goes, with what is behind it.
void cut_steps(const std::filesystem::path& folder, uint64_t step) {
  const auto file = folder / "steps.jsonl";
  if (!is_there(file)) return;
  std::istringstream lines(step == 0 ? "" : read_whole(file));
  std::string kept;
  for (std::string line; std::getline(lines, line) && !lines.eof();) {  // the last one may be unfinished
    const auto at = step_of(line);
    if (!at || *at > step) break;
    kept += line + "\n";
  }
  if (kept.empty()) {
    std::filesystem::remove(file);
  } else {
    replace_file(file, kept);
  }
}

}  // namespace

RunWriter::RunWriter(std::filesystem::path path, Identity identity, const std::vector<std::string>& lines,
                     uint64_t step)
    : path_(std::move(path)), identity_(std::move(identity)) {
  std::string text;
  for (const auto& line : lines) {
    epochs_.push_back(parse_epoch(line, path_.string()));
    take_in(epochs_.back());
    text += line + "\n";
  }
  replace_file(path_ / "config.toml", identity_.config);
  replace_file(path_ / "metrics.jsonl", text);
  cut_steps(path_, step);
  set_status(RunStatus::running);
}

void RunWriter::add_steps(const StepMetrics& metrics) {
  append_to_file(path_ / "steps.jsonl", to_line(metrics) + "\n");
}

void RunWriter::add_epoch(const EpochMetrics& metrics) {
  append_to_file(path_ / "metrics.jsonl", to_line(metrics) + "\n");
  sync_to_disk(path_ / "metrics.jsonl");  // a later checkpoint counts on the line
  epochs_.push_back(metrics);
  take_in(metrics);
  set_status(RunStatus::running);
}

void RunWriter::take_in(const EpochMetrics& metrics) {
  const auto improve = [&](std::optional<Best>& best, const Score& score) {
    if (!best || is_better(score, best->score)) best = Best{metrics.epoch, score};
  };
  if (!metrics.test) return;
  improve(best_off_, metrics.test->off);
  improve(best_on_, metrics.test->on);
  named_ = metrics.test->named;
}

void RunWriter::set_status(RunStatus status, const std::string& error) {
  nlohmann::json out = {{"status", to_string(status)},
                        {"name", identity_.name},
                        {"seed", identity_.seed},
                        {"config_hash", identity_.config_hash},
                        {"code_version", code_version()},
                        {"machine", identity_.machine},
                        {"threads", identity_.threads},
                        {"epochs", identity_.epochs},
                        {"epochs_done", epochs_.empty() ? identity_.first_epoch : epochs_.back().epoch + 1},
                        {"updated", now()}};
  if (!error.empty()) out["error"] = error;
  const auto best = [](const Best& best) {
    nlohmann::json all = to_json(best.score);
    all["epoch"] = best.epoch;
    return all;
  };
  if (best_off_) {
    out["best"] = {{"off", best(*best_off_)}, {"on", best(*best_on_)}, {"evaluation", to_string(named_)}};
  }
  if (!epochs_.empty()) {
    const EpochMetrics& last = epochs_.back();
    out["last"] = {{"epoch", last.epoch}, {"train_loss", last.train.loss}};
    if (last.test) out["last"]["test"] = to_json(*last.test);
  }
  replace_file(path_ / "status.json", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace strait
