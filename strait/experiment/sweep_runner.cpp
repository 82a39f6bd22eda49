#include "strait/experiment/sweep_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/files.h"
#include "strait/base/folder_lock.h"
#include "strait/experiment/run.h"
#include "strait/transport/membership.h"

namespace strait {
namespace {

using std::string_literals::operator""s;

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);
constexpr const char* kNext = "next.toml";  // what a run's process reads: config.toml is of what is there

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
  const bool asked = end.signal == SIGTERM || end.signal == SIGINT || end.signal == SIGHUP;
  if (end.status == kStopped || asked) return {RunStatus::stopped, ""};
  if (end.signal != 0) return {RunStatus::failed, fmt::format("killed by signal {}", strsignal(end.signal))};
  if (end.status == kDone) return {RunStatus::done, ""};
  if (end.status == kDiverged) return {RunStatus::diverged, ""};
  const std::string reason = last_line(log);
  if (!reason.empty()) return {RunStatus::failed, reason};
  return {RunStatus::failed, fmt::format("exit status {}, and {} does not say why", end.status, log.string())};
}

/// Whether the folder holds a run of this configuration that its status.json tells of.
bool holds_this_run(const std::filesystem::path& folder, const Config& config, bool replaces_unreadable) {
  try {
    return recorded_status(config, folder).has_value();
  } catch (const InputError&) {
    if (!replaces_unreadable) throw;
    return false;
  }
}

/// Whether a run of this configuration was killed as it began: it writes config.toml before all else.
bool has_just_begun(const std::filesystem::path& folder, const Config& config) {
  const auto file = folder / "config.toml";
  return has_file(file) && read_whole(file, kConfigBytesMost) == to_toml(config);
}

/// Makes the folder of a run ready for its process. Gives the flags with which that begins: a run of this
/// configuration that did not come to its end resumes; another one is replaced, but nothing that is no run.
/// Throws Error where the folder cannot be read or written, or belongs to another process.
std::vector<std::string> prepare(const std::filesystem::path& folder, const Config& config,
                                 bool replaces_unreadable) {
  const FolderLock lock(folder);
  std::vector<std::string> beginning;
  if (holds_this_run(folder, config, replaces_unreadable) ||
      (!holds_run(folder) && has_just_begun(folder, config))) {
    beginning = {"--resume"};
  } else if (holds_run(folder)) {
    beginning = {"--overwrite"};
  }
  replace_file(folder / kNext, to_toml(config));
  return beginning;
}

/// Unless another process has begun to train there: then the status is that one's.
void record_failure_unless_taken(const std::filesystem::path& folder, const std::string& error) {
  try {
    const FolderLock lock(folder);
    strait::record_failure(folder, error);
  } catch (const InputError&) {
    return;
  }
}

}  // namespace

SweepRunner::SweepRunner(const Sweep& sweep, std::filesystem::path folder, SweepRecord& record,
                         SweepObserver& observer, Processes processes)
    : sweep_(sweep),
      folder_(std::move(folder)),
      record_(record),
      observer_(observer),
      processes_(std::move(processes)),
      slots_(static_cast<size_t>(processes_.jobs)) {}

std::unique_ptr<SweepRunner::Job> SweepRunner::start(size_t run, size_t slot) {
  const Config& config = sweep_.runs[run].config;
  const auto folder = folder_ / config.name;
  std::vector<std::string> beginning;
  observer_.on_start(run);
  try {
    beginning = prepare(folder, config, processes_.replaces_unreadable);
  } catch (const Error& error) {
    record_end(run, {RunStatus::failed, error.what()});
    return nullptr;
  }
  std::vector<std::string> words = processes_.program;
  for (const std::string& word : {"train"s, (folder / kNext).string(), "--out"s, folder.string()}) {
    words.push_back(word);
  }
  words.insert(words.end(), beginning.begin(), beginning.end());
  words.insert(words.end(), processes_.flags.begin(), processes_.flags.end());
  auto job = std::make_unique<Job>(run, folder,
                                   Child::Command{.words = std::move(words),
                                                  .output = folder / "log.txt",
                                                  .cores = share_of(available_cores(), slot, slots_.size()),
                                                  .environment = environment_of_one_process()});
  record_.set(run, {RunStatus::running, ""});
  return job;
}

bool SweepRunner::has_ended(Job& job) {
  const auto end = job.child.poll();
  job.ended = end.has_value();
  for (const auto& epoch : job.tail.read_new()) observer_.on_epoch(job.run, epoch);
  if (!end) return false;
  const RunState state = state_after(*end, job.folder / "log.txt");
  if (state.status == RunStatus::failed) record_failure_unless_taken(job.folder, state.error);
  std::error_code ignored;
  std::filesystem::remove(job.folder / kNext, ignored);
  record_end(job.run, state);
  return true;
}

void SweepRunner::record_end(size_t run, const RunState& state) {
  record_.set(run, state);
  observer_.on_end(run, state);
}

bool SweepRunner::train(std::span<const size_t> runs) {
  try {
    return train_all(runs);
  } catch (const Error&) {
    stop_all();
    throw;
  }
}

void SweepRunner::ask_to_stop() {
  for (const auto& job : slots_) {
    if (job && !job->ended) job->child.ask_to_stop();
  }
}

/// Has each run stop in order, and waits for it.
void SweepRunner::stop_all() {
  ask_to_stop();
  for (const auto& job : slots_) {
    while (job && !job->ended && !job->child.poll()) std::this_thread::sleep_for(kBetweenLooks);
  }
}

bool SweepRunner::train_all(std::span<const size_t> runs) {
  bool stopping = false;
  size_t next = 0;
  do {
    if (observer_.should_stop() && !stopping) {
      stopping = true;
      ask_to_stop();
    }
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] && has_ended(*slots_[i])) slots_[i].reset();
      if (!slots_[i] && !stopping && next < runs.size()) slots_[i] = start(runs[next++], i);
    }
    std::this_thread::sleep_for(kBetweenLooks);
  } while ((!stopping && next < runs.size()) ||
           std::ranges::any_of(slots_, [](const auto& job) { return job != nullptr; }));
  return !stopping;
}

}  // namespace strait
