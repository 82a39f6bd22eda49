#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/link_flag.h"
#include "cli/output.h"
#include "cli/verbosity.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/stop_signal.h"
#include "strait/base/text.h"
#include "strait/base/token.h"
#include "strait/experiment/launch_mark.h"
#include "strait/transport/launched_ranks.h"

namespace strait::cli {
namespace {

struct LaunchFlags {
  int processes = 0;
  int port = 0;
  int restarts = 0;
  int replacements = 0;
  std::optional<std::string> link;
  std::vector<std::string> words;
  bool dry_run = false;
  Verbosity verbosity;
};

/// What each process runs: the words behind --, and the flags that are launch's as well as train's.
std::vector<std::string> command_of(const LaunchFlags& flags) {
  std::vector<std::string> words = {"/proc/self/exe"};
  words.insert(words.end(), flags.words.begin(), flags.words.end());
  if (flags.link) words.insert(words.end(), {"--link", *flags.link});
  if (flags.dry_run) words.emplace_back("--dry-run");
  if (flags.verbosity.quiet) words.emplace_back("--quiet");
  if (flags.verbosity.verbose) words.emplace_back("--verbose");
  return words;
}

/// The same for ranks that are replaced: the others must wait for a new process.
void have_them_wait(std::vector<std::string>& words) {
  const auto says_so = [](const std::string& word) {
    return word.find("pipeline.rejoin=") != std::string::npos;
  };
  if (std::ranges::none_of(words, says_so)) words.insert(words.end(), {"--set", "pipeline.rejoin=60s"});
}

/// Prints the lines of ranks. One of an error goes where errors go, unless another rank has said the same: what
/// is wrong with the input is found by all.
class RankLines {
 public:
  void print(int rank, const std::string& line) {
    const std::string text = fmt::format("[{}] {}\n", rank, line);
    if (!line.starts_with("strait: ")) {
      cli::print(text);
      flush_output();
    } else if (const auto [first, is_new] = errors_.emplace(line, rank); is_new || first->second == rank) {
      show(printable(text));
    }
  }

  /// What is said from now on is of another failure.
  void begin_again() { errors_.clear(); }

 private:
  std::map<std::string, int> errors_;  ///< with the rank that said it first
};

/// Whether another start may come further.
bool is_worth_a_restart(int status) {
  return status != kDone && status != kWrongInput && status != kDiverged && status != kStopped &&
         !stop_requested();
}

/// Allows so many replacements, and says so with a line each.
IsReplaced replaces_lost_ranks(int most, RankLines& lines) {
  if (most == 0) return {};
  return [most, &lines, made = 0](int rank, const Child::End& end) mutable {
    if (made == most || !is_worth_a_restart(status_of(end))) return false;
    ++made;
    lines.begin_again();
    print(fmt::format("rank {} {}; starting it again, replacement {} of {}\n", rank, text_of(end), made, most));
    flush_output();
    return true;
  };
}

int run_launch(const LaunchFlags& flags) {
  const std::string& verb = flags.words.front();
  if (verb != "train" && verb != "doctor") {
    throw InputError(
        "launch: expected train or doctor behind --, found \"{}\": the other verbs run in one process, and a "
        "program of one's own is started with RANK and WORLD_SIZE, as by torchrun",
        verb);
  }
  for (const auto& [flag, given] : {std::pair("--restarts", flags.restarts > 0),
                                    {"--replace", flags.replacements > 0},
                                    {"--link", flags.link.has_value()}}) {
    if (verb != "train" && given) throw InputError("launch: {} is for train, found {}", flag, verb);
  }
  check_link_flag(flags.link);
  catch_stop_signals();
  ::setenv(kLaunchVariable, random_token().c_str(), 1);
  auto words = command_of(flags);
  if (flags.replacements > 0) have_them_wait(words);
  for (int restart = 0;; ++restart) {
    RankLines lines;
    const auto print_line = [&lines](int rank, const std::string& line) { lines.print(rank, line); };
    LaunchedRanks ranks(flags.processes, static_cast<uint16_t>(flags.port), words, print_line, {},
                        replaces_lost_ranks(flags.replacements, lines));
    const int status = ranks.wait();
    if (restart == flags.restarts || !is_worth_a_restart(status)) return status;
    print(fmt::format("{}; restarting all ranks, restart {} of {}\n", ranks.failure(), restart + 1,
                      flags.restarts));
    flush_output();
  }
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
  launch
      ->add_option(
          "--port", flags->port,
          "MASTER_PORT of the processes, which c10d opens, and tcp with a secret (default: a free one)")
      ->check(CLI::Range(1, 65535))
      ->type_name("PORT");
  launch
      ->add_option("--restarts", flags->restarts,
                   "When a process fails, start all again, to resume what they had begun, at most N times (not "
                   "when the input is wrong or training diverged)")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->type_name("N");
  launch
      ->add_option("--replace", flags->replacements,
                   "When a process fails, start it again while the others keep theirs, at most N times; sets "
                   "pipeline.rejoin to 60s where --set does not say another (not when the input is wrong or "
                   "training diverged)")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->type_name("N");
  add_link_flag(*launch, flags->link);
  launch->add_option("command", flags->words, "What each process runs, behind --: train or doctor")
      ->required()
      ->type_name("-- train CONFIG.toml");
  launch->add_flag("--dry-run", flags->dry_run,
                   "Of train: print what the run and each process would do, touch no folder and exit");
  add_verbosity(*launch, flags->verbosity);
  launch->footer(
      "\nSets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, prefixes every line "
      "with\n"
      "the rank, prints an error that several ranks report once, passes Ctrl-C, SIGTERM and SIGHUP on and "
      "leaves\n"
      "no process behind. The exit status is that of the first process that failed. Over several machines:\n"
      "docs/distributed.md.");
  launch->callback([&action, flags] { action = [flags] { return run_launch(*flags); }; });
}

}  // namespace strait::cli
