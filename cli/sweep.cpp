#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/sweep_progress.h"
#include "cli/verbosity.h"
#include "cli/verbs.h"
#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/folder_lock.h"
#include "strait/base/json.h"
#include "strait/base/stop_signal.h"
#include "strait/base/text.h"
#include "strait/experiment/run.h"
#include "strait/experiment/sweep.h"
#include "strait/experiment/sweep_record.h"
#include "strait/experiment/sweep_runner.h"

namespace strait::cli {
namespace {

struct SweepFlags {
  std::string file;
  std::string out;
  std::vector<std::string> only;
  std::vector<uint64_t> seeds;
  int jobs = 1;
  bool overwrite = false;
  Verbosity verbosity;
};

/// A sweep with the runs that the command line is about.
struct Selection {
  Sweep sweep;
  std::filesystem::path folder;
  std::vector<size_t> chosen;
};

void check_jobs(int jobs) {
  const size_t cores = available_cores().size();
  if (jobs >= 1 && std::cmp_less_equal(jobs, cores)) return;
  throw InputError("--jobs: expected an integer from 1 to {}, the number of cores here, found {}", cores, jobs);
}

/// The columns of a run's name must fit the longest.
size_t name_width(const Selection& selection) {
  size_t width = std::string_view("run").size();
  for (const size_t run : selection.chosen)
    width = std::max(width, selection.sweep.runs[run].config.name.size());
  return width;
}

/// What there is to say of a run at the end.
struct Result {
  std::string name;
  std::optional<RunSummary> summary;  ///< of one that is done
  std::string instead;                ///< of any other
};

/// What all results are judged by; where they differ, what all have; accuracy where there are none.
const Metric& metric_of(const std::vector<Result>& results) {
  const Metric* common = nullptr;
  for (const auto& result : results) {
    if (!result.summary) continue;
    const Score& score = result.summary->test.off;
    const Metric* judge = judge_of(score);
    if (judge == nullptr) return kLoss;
    if (common == nullptr) common = judge;
    if (common != judge) common = &kAccuracy;
  }
  return common == nullptr ? kAccuracy : *common;
}

// Beside a metric that is a function of the loss the loss is usual too.
std::string score_heading(const Metric& metric) {
  std::string scores;
  for (const char* side : {"off", "on"}) {
    if (metric.rises_with_loss) scores += fmt::format("{:>9} ", fmt::format("{} loss", side));
    scores += fmt::format("{:>9} ", fmt::format("{} {}", side, metric.short_name));
  }
  return fmt::format("{}{:<7}", scores, "on is");
}

std::string score_columns(const Evaluation& test, const Metric& metric) {
  std::string scores;
  for (const Score* score : {&test.off, &test.on}) {
    if (metric.rises_with_loss) scores += fmt::format("{:>9.4f} ", score->loss);
    scores += fmt::format("{:>9} ", number_text(score->at(metric)));
  }
  return fmt::format("{}{:<7}", scores, to_string(test.named));
}

std::string result_columns(const RunSummary& run, const Metric& metric) {
  return fmt::format("{} {:>10.4f} {:>14.0f} {:>7.1f}x {:>8.1f}", score_columns(run.test, metric),
                     run.train_loss, run.wire_bytes_per_step, run.ratio, run.seconds);
}

/// What is printed at the end.
struct ResultTable {
  std::string text;
  std::vector<std::string> unreadable;  ///< runs that are done, but whose results cannot be read
};

ResultTable table_of(const Selection& selection, const SweepRecord& record) {
  const size_t width = name_width(selection);
  ResultTable table;
  std::vector<Result> results;
  for (const size_t run : selection.chosen) {
    const RunState& state = record.state(run);
    Result& result = results.emplace_back();
    result.name = selection.sweep.runs[run].config.name;
    if (state.status == RunStatus::failed) {
      result.instead = "failed: " + state.error;
    } else if (state.status != RunStatus::done) {
      result.instead = to_string(*state.status);
    } else {
      try {
        result.summary = summarise(selection.folder / result.name);
      } catch (const InputError& error) {
        result.instead = fmt::format("unreadable: {}", error.what());
        table.unreadable.push_back(result.name);
      }
    }
  }
  const Metric& metric = metric_of(results);
  table.text = fmt::format("\n{:<{}} {} {:>10} {:>14} {:>8} {:>8}\n", "run", width, score_heading(metric),
                           "train loss", "bytes per step", "ratio", "seconds");
  for (const auto& [name, summary, instead] : results) {
    table.text += fmt::format("{:<{}} {}\n", name, width, summary ? result_columns(*summary, metric) : instead);
  }
  return table;
}

/// Throws Error when runs have not come to their end, or their results cannot be read.
void check_all_finished(const Selection& selection, const SweepRecord& record,
                        const std::vector<std::string>& unreadable) {
  std::vector<std::string> unfinished;
  for (const size_t run : selection.chosen) {
    if (!record.is_finished(run)) unfinished.push_back(selection.sweep.runs[run].config.name);
  }
  const size_t all = selection.chosen.size();
  std::vector<std::string> complaints;
  if (!unfinished.empty()) {
    complaints.push_back(fmt::format("{} of {} runs failed: {}; see log.txt in the folder of each",
                                     unfinished.size(), all, list_of(unfinished)));
  }
  if (!unreadable.empty()) {
    complaints.push_back(fmt::format("the results of {} of {} runs cannot be read: {}", unreadable.size(), all,
                                     list_of(unreadable)));
  }
  if (!complaints.empty()) throw Error("{}", fmt::join(complaints, "; "));
}

/// Throws InputError where results would be lost that nobody said are to be.
void check_nothing_is_lost(const Selection& selection, const SweepRecord& record) {
  if (const auto other = record.other_sweep()) {
    throw InputError(
        "{}: there is the sweep {}, expected {}; --out names another folder, and --overwrite replaces its "
        "record",
        selection.folder.string(), json_string(*other), json_string(selection.sweep.name));
  }
  const auto others = record.others_trained(selection.chosen);
  if (others.empty()) return;
  constexpr size_t kShown = 3;
  const std::vector<std::string> shown(others.begin(), others.begin() + std::min(kShown, others.size()));
  throw InputError(
      "{}: there are runs of another configuration than the sweep's: {}{}; --overwrite replaces them",
      selection.folder.string(), list_of(shown),
      others.size() > kShown ? fmt::format(" and {} more", others.size() - kShown) : "");
}

int run_sweep(const SweepFlags& flags) {
  check_jobs(flags.jobs);
  Selection selection{load_sweep(flags.file), flags.out, {}};
  selection.chosen = runs_of(selection.sweep, flags.only, flags.seeds);
  if (selection.folder.empty()) selection.folder = "runs/" + selection.sweep.name;
  const FolderLock lock(selection.folder);  // each run's process has the one of its own folder
  SweepRecord record(selection.sweep, selection.folder);
  if (!flags.overwrite) check_nothing_is_lost(selection, record);
  record.save();
  std::vector<size_t> unfinished;
  std::ranges::copy_if(selection.chosen, std::back_inserter(unfinished),
                       [&](size_t run) { return !record.is_finished(run); });
  // All variants with one seed are a table that can be read, one variant with all seeds is not.
  std::ranges::stable_sort(unfinished, {}, [&](size_t run) { return selection.sweep.runs[run].config.seed; });
  catch_stop_signals();
  bool ended = false;
  {
    SweepProgress progress(selection.sweep, selection.chosen, record, flags.jobs, flags.verbosity.quiet);
    // Under this name the program is the one that runs here, even when its file is replaced meanwhile.
    SweepRunner::Processes processes{
        .program = {"/proc/self/exe"}, .jobs = flags.jobs, .replaces_unreadable = flags.overwrite};
    if (flags.verbosity.verbose) processes.flags = {"--verbose"};
    ended = SweepRunner(selection.sweep, selection.folder, record, progress, processes).train(unfinished);
  }
  if (!ended) {
    print(fmt::format("stopped; the same command resumes with what is not finished in {}\n",
                      selection.folder.string()));
    return kStopped;
  }
  const ResultTable table = table_of(selection, record);
  print(table.text);
  if (kHasReport) {
    print(fmt::format("\nFor a page with charts and tables: {} report {}\n", program_invocation_name,
                      selection.folder.string()));
  }
  flush_output();
  check_all_finished(selection, record, table.unreadable);
  return kDone;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto* sweep = app.add_subcommand("sweep", "Train every variant of a sweep file that is not finished yet");
  auto flags = std::make_shared<SweepFlags>();
  sweep->add_option("sweep", flags->file, "Sweep file")->required()->type_name("SWEEP.toml");
  sweep->add_option("--out", flags->out, "Folder of the sweep, one folder per run (default: runs/NAME)")
      ->check(not_empty())
      ->type_name("DIR");
  sweep->add_option("--jobs", flags->jobs, "Number of runs at once; they share the cores (default: 1)")
      ->type_name("N");
  sweep
      ->add_option("--only", flags->only,
                   "Train this variant, at all points of a grid, and no other (may be repeated)")
      ->type_name("VARIANT")
      ->allow_extra_args(false);
  sweep->add_option("--seed", flags->seeds, "Train runs with this seed and no other (may be repeated)")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->type_name("N")
      ->allow_extra_args(false);
  sweep->add_flag("--overwrite", flags->overwrite,
                  "Replace runs whose configuration is another than the sweep's, or cannot be told");
  add_verbosity(*sweep, flags->verbosity);
  sweep->footer(
      "\nExit status: 0 every run is done or diverged; 1 one failed, or its results cannot be read; 2 the "
      "command line or the sweep file is wrong; 130 stopped by Ctrl-C, SIGTERM or SIGHUP.");
  sweep->callback([&action, flags] { action = [flags] { return run_sweep(*flags); }; });
}

}  // namespace strait::cli
