#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "strait/experiment/run.h"

namespace strait::cli {
namespace {

struct EvalFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string weights;
  bool json = false;
};

std::string row_of(const char* name, const Score& score) {
  const std::string perplexity =
      score.perplexity ? fmt::format("{:>11} ", perplexity_text(*score.perplexity)) : "";
  return fmt::format("{:<12} {:>10.4f} {}{:>9.2f}%\n", name, score.loss, perplexity, score.accuracy);
}

int run_eval(const EvalFlags& flags) {
  const Config config = load_config(flags.config, flags.overrides);
  Evaluation scores;
  {
    Progress progress("", config.train.epochs);
    scores = evaluate_experiment(config, flags.weights, progress);
  }
  if (flags.json) {
    print(to_json(scores).dump() + "\n");
  } else {
    const bool text = scores.off.perplexity.has_value();
    print(
        fmt::format("{:<12} {:>10} {}{:>10}\n", "compression", "loss", text ? " perplexity " : "", "accuracy") +
        row_of("off", scores.off) + row_of("on", scores.on));
  }
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto* eval = app.add_subcommand("eval", "Score weights on the test set, with compression off and on");
  auto flags = std::make_shared<EvalFlags>();
  eval->add_option("config", flags->config, "Configuration file")->required()->type_name("CONFIG.toml");
  eval->add_option("--weights", flags->weights, "Weights under PyTorch's names")
      ->required()
      ->type_name("FILE.safetensors");
  eval->add_option("--set", flags->overrides,
                   "Change a key, for example data.test_limit=1000 (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  eval->add_flag("--json", flags->json, "Print one JSON object");
  eval->callback([&action, flags] { action = [flags] { return run_eval(*flags); }; });
}

}  // namespace strait::cli
