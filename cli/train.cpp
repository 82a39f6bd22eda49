#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/outcome.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "cli/verbs.h"
#include "strait/experiment/run.h"

namespace strait::cli {
namespace {

struct TrainFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  bool overwrite = false;
};

int run_train(const TrainFlags& flags) {
  const Config config = load_config(flags.config, flags.overrides);
  const std::string out = flags.out.empty() ? "runs/" + config.name : flags.out;
  catch_stop_signals();
  RunOutcome outcome;
  {
    Progress progress("", config.train.epochs);
    outcome = run_experiment(config, out, flags.overwrite, progress);
  }
  return report_outcome(outcome, out);
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto* train = app.add_subcommand("train", "Train what a configuration describes");
  auto flags = std::make_shared<TrainFlags>();
  train->add_option("config", flags->config, "Configuration file")->required()->type_name("CONFIG.toml");
  train->add_option("--set", flags->overrides, "Change a key, for example train.epochs=3 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  train->add_option("--out", flags->out, "Folder of the run (default: runs/NAME)")->type_name("DIR");
  train->add_flag("--overwrite", flags->overwrite, "Replace the run that the folder holds");
  train->callback([&action, flags] { action = [flags] { return run_train(*flags); }; });
}

}  // namespace strait::cli
