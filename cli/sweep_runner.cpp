#include "cli/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "cli/exit_status.h"
#include "cli/stop_signal.h"
#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/experiment/run.h"

namespace strait::cli {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

/// The last line of a log that is not empty, without the program's name before it.
std::string last_line(const std::filesystem::path& log) {
  std::ifstream in(log);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = std::move(line);
  }
  constexpr std::string_view kName = "strait: ";
  return last.starts_with(kName) ? last.substr(kName.size()) : last;
}

RunState state_after(const Child::End& end, const std::filesystem::path& log) {
  if (end.status == kStopped || end.signal == SIGTERM || end.signal == SIGINT) return {RunStatus::stopped, ""};
  if (end.signal != 0) return {RunStatus::failed, fmt::format("killed by signal {}", strsignal(end.signal))};
  if (end.status == kDone) return {RunStatus::done, ""};
  if (end.status == kDiverged) return {RunStatus::diverged, ""};
  return {RunStatus::failed, last_line(log)};
}

}  // namespace

SweepRunner::SweepRunner(const Sweep& sweep, std::filesystem::path folder, int jobs, SweepRecord& record,
                         SweepProgress& progress)
    : sweep_(sweep),
      folder_(std::move(folder)),
      record_(record),
      progress_(progress),
      slots_(static_cast<size_t>(jobs)) {}

std::unique_ptr<SweepRunner::Job> SweepRunner::start(size_t run, size_t slot) {
  const Config& config = sweep_.runs[run].config;
  const auto folder = folder_ / config.name;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw InputError("{}: cannot make the folder: {}", folder.string(), error.message());
  // A run of this configuration that did not come to its end goes on; another one is replaced.
  const std::string beginning = recorded_status(config, folder) ? "--resume" : "--overwrite";
  replace_file(folder / "config.toml", to_toml(config));
  // Under this name the program is the one that runs here, even when its file is replaced meanwhile.
  const std::string program = "/proc/self/exe";
  auto job = std::make_unique<Job>(
      run, folder,
      Child::Command{.words = {program, "train", folder / "config.toml", "--out", folder, beginning},
                     .output = folder / "log.txt",
                     .cores = share_of(available_cores(), slot, slots_.size())});
  record_.set(run, {RunStatus::running, ""});
  progress_.on_start(run);
  return job;
}

bool SweepRunner::has_ended(Job& job) {
  const auto end = job.child.poll();
  for (const auto& epoch : job.tail.read_new()) progress_.on_epoch(job.run, epoch);
  if (!end) return false;
  const RunState state = state_after(*end, job.folder / "log.txt");
  if (state.status == RunStatus::failed) record_failure(job.folder, state.error);
  record_.set(job.run, state);
  progress_.on_end(job.run, state);
  return true;
}

bool SweepRunner::train(std::span<const size_t> runs) {
  bool stopping = false;
  size_t next = 0;
  do {
    if (!stopping && stop_requested()) {
      stopping = true;
      for (const auto& job : slots_) {
        if (job) job->child.ask_to_stop();
      }
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] && has_ended(*slots_[i])) slots_[i].reset();
      if (!slots_[i] && !stopping && next < runs.size()) slots_[i] = start(runs[next++], i);
    }
    progress_.draw();
    std::this_thread::sleep_for(kBetweenLooks);
  } while (std::ranges::any_of(slots_, [](const auto& job) { return job != nullptr; }));
  return !stopping;
}

}  // namespace strait::cli
