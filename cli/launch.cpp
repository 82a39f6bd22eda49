#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>

#include "cli/exit_status.h"
#include "cli/rank_output.h"
#include "cli/stop_signal.h"
#include "cli/verbs.h"
#include "strait/base/child.h"
#include "strait/base/clock.h"
#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/transport/join_group.h"
#include "strait/transport/port.h"

namespace strait::cli {
namespace {

constexpr int kLookMilliseconds = 50;
constexpr int kSignalled = 128;  // as shells count them
/// How long the others may take to end by themselves when one has failed, and then when asked to.
constexpr double kGraceSeconds = 10;
constexpr double kStopSeconds = 10;

struct LaunchFlags {
  int processes = 0;
  int port = 0;
  std::vector<std::string> words;
};

/// A folder that goes with everything in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strait-launch-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
      throw Error("{}: cannot be made: {}", pattern, std::strerror(errno));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The processes and what becomes of them.
class Launch {
 public:
  explicit Launch(const LaunchFlags& flags) {
    const int port = flags.port > 0 ? flags.port : free_port();
    std::vector<std::string> words = {"/proc/self/exe"};
    words.insert(words.end(), flags.words.begin(), flags.words.end());
    for (int rank = 0; rank < flags.processes; ++rank) {
      auto& output = *outputs_.emplace_back(
          std::make_unique<RankOutput>(folder_.path() / fmt::format("rank-{}", rank), rank));
      const Child::Command command{
          .words = words,
          .output = output.path(),
          .cores = available_cores(),
          .environment = {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", flags.processes),
                          fmt::format("LOCAL_RANK={}", rank),
                          fmt::format("LOCAL_WORLD_SIZE={}", flags.processes), "MASTER_ADDR=127.0.0.1",
                          fmt::format("MASTER_PORT={}", port), "TORCHELASTIC_USE_AGENT_STORE="}};
      children_.push_back(std::make_unique<Child>(command));
    }
  }

  /// Waits for the end of all; the status of the first that failed.
  int wait() {
    while (running_ != 0) {
      pass_on_output();
      look_at_children();
      if (stop_requested() && !asked_) ask_to_stop();
      if (status_ != kDone && !asked_ && since_failure_.seconds() > kGraceSeconds) ask_to_stop();
      if (asked_ && status_ != kDone && since_asked_.seconds() > kStopSeconds) break;  // their end is ours
    }
    for (const auto& output : outputs_) output->finish();
    return status_;
  }

 private:
  void pass_on_output() {
    std::vector<pollfd> waits;
    for (const auto& output : outputs_) waits.push_back({output->descriptor(), POLLIN, 0});
    poll(waits.data(), waits.size(), kLookMilliseconds);
    for (const auto& output : outputs_) output->pass_on();
  }

  void look_at_children() {
    running_ = 0;
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      auto& child = children_[rank];
      if (!child) continue;
      const auto end = child->poll();
      if (!end) {
        ++running_;
        continue;
      }
      child.reset();
      if (end->signal != 0) {
        outputs_[rank]->finish();
        fmt::print(stderr, "[{}] strait: killed by signal {} ({})\n", rank, end->signal,
                   strsignal(end->signal));
      }
      const int status = end->signal != 0 ? kSignalled + end->signal : end->status;
      if (status == kDone || status_ != kDone) continue;
      status_ = status;
      since_failure_ = Stopwatch();
    }
  }

  void ask_to_stop() {
    for (const auto& child : children_) {
      if (child) child->ask_to_stop();
    }
    asked_ = true;
    since_asked_ = Stopwatch();
  }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<RankOutput>> outputs_;
  std::vector<std::unique_ptr<Child>> children_;
  int running_ = -1;  ///< not counted yet
  int status_ = kDone;
  bool asked_ = false;
  Stopwatch since_failure_;
  Stopwatch since_asked_;
};

int run_launch(const LaunchFlags& flags) {
  if (flags.words.front() != "train") {
    throw InputError("launch: expected train behind --, found \"{}\"", flags.words.front());
  }
  require_groups();
  catch_stop_signals();
  return Launch(flags).wait();
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  auto* launch =
      app.add_subcommand("launch", "Train with several processes on this machine, one for each stage");
  auto flags = std::make_shared<LaunchFlags>();
  launch
      ->add_option("-n,--processes", flags->processes,
                   "Number of processes: the stages that model.cuts makes, times pipeline.replicas")
      ->required()
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  launch->add_option("--port", flags->port, "Port of 127.0.0.1 at which they meet (default: a free one)")
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT");
  launch->add_option("command", flags->words, "What each process runs, behind --")
      ->required()
      ->type_name("-- train CONFIG.toml ...");
  launch->footer(
      "\nSets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, prefixes every line "
      "with\n"
      "the rank, passes Ctrl-C and SIGTERM on and leaves no process behind. The exit status is that of the "
      "first\n"
      "process that failed. Over several machines: docs/distributed.md.");
  launch->callback([&action, flags] { action = [flags] { return run_launch(*flags); }; });
}

}  // namespace strait::cli
