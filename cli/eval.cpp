#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/config_argument.h"
#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/config/published.h"
#include "strait/experiment/run.h"
#include "strait/run/metrics_json.h"

namespace strait::cli {
namespace {

struct EvalFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string weights;
  std::string checkpoint;
  bool json = false;
};

/// Keeps what is to be said for the end, behind the table.
class Scoring : public Progress {
 public:
  using Progress::Progress;
  void on_note(const std::string& line) override { notes += line + "\n"; }
  std::string notes;
};

std::string row_of(std::string_view name, const Score& score) {
  std::string row = fmt::format("{:<12} {:>10.4f}", name, score.loss);
  for (const Metric& metric : all_metrics()) {
    if (!score.metrics.contains(std::string(metric.name))) continue;
    row += fmt::format(" {:>10}", number_text(score.at(metric)) + std::string(metric.unit));
  }
  return row + "\n";
}

std::string heading_of(const Score& score) {
  std::string heading = fmt::format("{:<12} {:>10}", "compression", "loss");
  for (const Metric& metric : all_metrics()) {
    if (score.metrics.contains(std::string(metric.name))) heading += fmt::format(" {:>10}", metric.name);
  }
  return heading + "\n";
}

std::string table_of(const Evaluation& scores) {
  std::string table = heading_of(scores.off) + row_of("off", scores.off) +
                      row_of(fmt::format("on ({})", to_string(scores.named)), scores.on);
  for (const auto& [mode, score] : scores.modes) {
    if (mode != scores.named) table += row_of(to_string(mode), score);
  }
  return table;
}

int run_eval(const EvalFlags& flags) {
  const Config config = load_config(config_file(flags.config), flags.overrides);
  const std::string weights = weights_asked(flags.weights, flags.config);
  if (weights.empty())
    throw InputError("--weights: expected a file, or the folder of a run that has its weights");
  Evaluation scores;
  std::string notes;
  {
    Scoring progress("", config.train.epochs);
    scores = evaluate_experiment(config, weights_at(weights), flags.checkpoint, progress);
    notes = progress.notes;
  }
  print(flags.json ? to_json(scores).dump() + "\n" : table_of(scores) + notes);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto* eval = app.add_subcommand("eval", "Score weights on the test set, with compression off and on");
  auto flags = std::make_shared<EvalFlags>();
  add_config_argument(*eval, flags->config)->required();
  eval->add_option("--weights", flags->weights,
                   "Weights under PyTorch's names, or a folder with model.safetensors (default: those of the "
                   "run's folder)")
      ->check(not_empty())
      ->type_name("FILE.safetensors");
  eval->add_option(
          "--checkpoint", flags->checkpoint,
          "Where the link state of these weights is: the folder of their run, of its checkpoints or of one "
          "(default: beside the weights)")
      ->check(not_empty())
      ->type_name("DIR");
  eval->add_option("--set", flags->overrides,
                   "Change a key, for example data.test_limit=1000 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  eval->add_flag("--json", flags->json, "Print one JSON object");
  eval->footer(
      "\nCompression on is scored in up to three modes, and compression.evaluation names the one called on:\n"
      "plain, the bare operator; and, where activations have feedback, frozen, the scheme with its state as\n"
      "training left it, and live, with its state moving from batch to batch. The last two need the link\n"
      "state that a checkpoint of the weights holds.");
  eval->callback([&action, flags] { action = [flags] { return run_eval(*flags); }; });
}

}  // namespace strait::cli
