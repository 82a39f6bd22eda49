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
  bool resume = false;
};

int run_train(const TrainFlags& flags) {
  const Config config = load_config(flags.config, flags.overrides);
  const std::string out = flags.out.empty() ? "runs/" + config.name : flags.out;
  catch_stop_signals();
  RunOutcome outcome;
  {
    Progress progress("", config.train.epochs);
    const Start start = flags.resume ? Start::resume : flags.overwrite ? Start::replace : Start::fresh;
    outcome = run_experiment(config, out, start, progress);
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
  auto* overwrite = train->add_flag("--overwrite", flags->overwrite, "Replace the run that the folder holds");
  train
      ->add_flag(
          "--resume", flags->resume,
          "Go on from the folder's newest checkpoint, to the same bits as without the interruption; start "
          "from the beginning where there is none")
      ->excludes(overwrite);
  train->callback([&action, flags] { action = [flags] { return run_train(*flags); }; });
}

}  // namespace strait::cli
