#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/outcome.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "cli/verbs.h"
#include "strait/experiment/run.h"
#include "strait/experiment/sweep.h"

namespace strait::cli {
namespace {

struct SweepFlags {
  std::string file;
  std::string out;
};

std::string header_line() {
  return fmt::format("\n{:<12} {:>9} {:>9} {:>10} {:>14} {:>8} {:>8}\n", "run", "off %", "on %", "train loss",
                     "bytes a step", "ratio", "seconds");
}

std::string result_line(const std::string& name, const RunSummary& run) {
  if (run.status != RunStatus::done) return fmt::format("{:<12} {}\n", name, to_string(run.status));
  return fmt::format("{:<12} {:>9.2f} {:>9.2f} {:>10.4f} {:>14.0f} {:>7.1f}x {:>8.1f}\n", name,
                     run.off_accuracy, run.on_accuracy, run.train_loss, run.wire_bytes_per_step, run.ratio,
                     run.seconds);
}

int run_sweep(const SweepFlags& flags) {
  const Sweep sweep = load_sweep(flags.file);
  const std::filesystem::path out = flags.out.empty() ? "runs/" + sweep.name : flags.out;
  catch_stop_signals();
  std::string table = header_line();
  for (const Config& config : sweep.runs) {
    const auto folder = out / config.name;
    if (!is_finished(config, folder)) {
      Progress progress(config.name, config.train.epochs);
      const RunOutcome outcome = run_experiment(config, folder, Start::replace, progress);
      if (outcome.status == RunStatus::stopped) return report_outcome(outcome, folder);
    }
    table += result_line(config.name, summarise(folder));
  }
  print(table);
  return 0;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  auto* sweep = app.add_subcommand("sweep", "Train every variant of a sweep file that is not finished yet");
  auto flags = std::make_shared<SweepFlags>();
  sweep->add_option("sweep", flags->file, "Sweep file")->required()->type_name("SWEEP.toml");
  sweep->add_option("--out", flags->out, "Folder of the sweep, one folder a run (default: runs/NAME)")
      ->type_name("DIR");
  sweep->callback([&action, flags] { action = [flags] { return run_sweep(*flags); }; });
}

}  // namespace strait::cli
