#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "cli/config_argument.h"
#include "cli/flag_checks.h"
#include "cli/link_flag.h"
#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/roll_call.h"
#include "cli/verbosity.h"
#include "cli/verbs.h"
#include "strait/base/exit_status.h"
#include "strait/base/files.h"
#include "strait/base/stop_signal.h"
#include "strait/experiment/rejoin.h"
#include "strait/experiment/run.h"

namespace strait::cli {
namespace {

struct TrainFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::optional<std::string> link;
  std::string out;
  bool overwrite = false;
  bool resume = false;
  bool dry_run = false;
  std::string trace;
  Verbosity verbosity;

  Start start() const { return resume ? Start::resume : overwrite ? Start::replace : Start::fresh; }
};

/// Says nothing, and passes a stop signal on.
class Quiet : public TrainObserver {
 public:
  bool should_stop() override { return stop_requested(); }
};

/// Writes the events of all processes into one file.
void write_trace(const Trace& trace, const std::string& path, Group& group) {
  const auto events = group.gather(trace.events_json(group.rank()));
  run_collectively(group, [&] {
    if (group.rank() == 0) replace_file(path, trace_file(events));
  });
}

/// Throws where write_trace() could not write. The run's folder may have to be made yet, for which the training
/// answers.
void check_trace(const TrainFlags& flags, const std::string& out) {
  if (flags.trace.empty()) return;
  check_not_input("--trace", flags.trace, config_file(flags.config));
  const auto folder_of = [](const std::filesystem::path& path) {
    std::error_code error;  // whoever uses a path that leads nowhere refuses it
    return std::filesystem::weakly_canonical(path, error).lexically_normal();
  };
  const std::filesystem::path folder = std::filesystem::absolute(flags.trace).parent_path();
  if (is_there(folder) || folder_of(folder) != folder_of(out)) {
    check_output_file("--trace", flags.trace);
  }
}

/// Those that decide what the processes do together.
std::string shared_flags(const TrainFlags& flags) {
  std::string all;
  if (flags.resume) all += "--resume ";
  if (flags.overwrite) all += "--overwrite ";
  if (!flags.trace.empty()) all += "--trace ";
  return all.substr(0, all.find_last_not_of(' ') + 1);
}

RunOutcome train_in(std::shared_ptr<Group> group, const TrainFlags& flags, const Config& config,
                    const std::string& out, Start start, const std::function<void()>& begun = {}) {
  run_collectively(*group, [&] {
    if (group->rank() == 0) check_trace(flags, out);
  });
  const auto trace = flags.trace.empty() ? nullptr : std::make_unique<Trace>();
  std::unique_ptr<TrainObserver> observer = std::make_unique<Quiet>();
  if (group->rank() == 0 && !flags.verbosity.quiet) {
    observer = std::make_unique<Progress>("", config.train.epochs, flags.verbosity.verbose);
  }
  RunOutcome outcome = run_experiment(config, out, start, *observer, group, trace.get(), begun);
  observer.reset();  // a bar must not stand before what comes now
  if (trace && outcome.status != RunStatus::diverged) write_trace(*trace, flags.trace, *group);
  return outcome;
}

/// Says what the process would do.
int describe_training(const TrainFlags& flags, const Config& config, const std::string& out,
                      const Membership& membership) {
  if (membership.rank == 0) check_trace(flags, out);
  const RankTopology place{
      .rank = membership.rank, .ranks = membership.size, .replicas = config.pipeline.replicas};
  std::string text;
  for (const auto& line : describe_experiment(config, out, flags.start(), place, membership.local_size)) {
    text += line + "\n";
  }
  print(text);
  return kDone;
}

/// The values of --set, and what --link is short for.
std::vector<std::string> overrides_of(const TrainFlags& flags) {
  check_link_flag(flags.link);
  auto overrides = flags.overrides;
  if (flags.link) overrides.push_back("pipeline.link=" + *flags.link);
  return overrides;
}

int run_train(const TrainFlags& flags) {
  const Config config = load_config(config_file(flags.config), overrides_of(flags));
  const std::string out = flags.out.empty() ? "runs/" + config.name : flags.out;
  const auto membership = membership_of_process();
  if (flags.dry_run) return describe_training(flags, config, out, membership.value_or(Membership{}));
  catch_stop_signals();
  if (!membership || membership->size == 1) {
    return report_outcome(train_in(std::make_shared<SingleProcessGroup>(), flags, config, out, flags.start()),
                          out);
  }
  const auto note = [](const std::string& line) {
    print(line + "\n");
    flush_output();
  };
  const auto train = [&](std::shared_ptr<Group> group, Start start, const std::function<void()>& begun) {
    return train_in(std::move(group), flags, config, out, start, begun);
  };
  try {
    const auto outcome = train_with_others(config, *membership, shared_flags(flags), flags.start(),
                                           RollCall(membership->rank), note, train);
    return report_outcome(outcome, out, membership->rank);
  } catch (const StoppedWaiting& stopped) {
    note(stopped.what());
    return kStopped;
  }
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto* train = app.add_subcommand("train", "Train what a configuration describes");
  auto flags = std::make_shared<TrainFlags>();
  add_config_argument(*train, flags->config)->required();
  train->add_option("--set", flags->overrides, "Change a key, for example train.epochs=3 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_link_flag(*train, flags->link);
  train->add_option("--out", flags->out, "Folder of the run (default: runs/NAME)")
      ->check(not_empty())
      ->type_name("DIR");
  auto* overwrite =
      train->add_flag("--overwrite", flags->overwrite,
                      "Replace the run that the folder holds, and other files with the names of a run's");
  train
      ->add_flag("--resume", flags->resume,
                 "Resume from the newest checkpoint in the folder, or start from the beginning where there is "
                 "none; on the same machine the result is bit-identical to an uninterrupted run. With several "
                 "processes, refuse when a part of the checkpoint is lost")
      ->excludes(overwrite);
  train
      ->add_option("--trace", flags->trace,
                   "Write a timeline of all processes as Chrome trace JSON, for ui.perfetto.dev")
      ->check(not_empty())
      ->type_name("FILE");
  train->add_flag("--dry-run", flags->dry_run, "Print what the run would do, touch no folder and exit");
  add_verbosity(*train, flags->verbosity);
  train->footer(
      "\nWith the variables of torchrun, Open MPI or Slurm set, this process trains one stage of several; see\n"
      "`strait launch --help` and docs/distributed.md. Between machines it needs the run's secret in\n"
      "STRAIT_SECRET, or in the file that STRAIT_SECRET_FILE names; see `strait keys --help`.");
  train->callback([&action, flags] { action = [flags] { return run_train(*flags); }; });
}

}  // namespace strait::cli
