#include <CLI/CLI.hpp>
#include <memory>

#include "cli/config_argument.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/config/manual.h"

namespace strait::cli {
namespace {

struct ConfigFlags {
  std::string config;
  std::vector<std::string> overrides;
};

int run_config(const ConfigFlags& flags) {
  if (flags.config.empty() && flags.overrides.empty()) {
    print(manual_of_defaults());
  } else {
    print(manual_of(flags.config.empty() ? parse_config("", "the defaults", flags.overrides)
                                         : load_config(config_file(flags.config), flags.overrides)));
  }
  return 0;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  auto* config = app.add_subcommand(
      "config",
      "Print every key with its meaning and its default, or with the value that a configuration gives it");
  auto flags = std::make_shared<ConfigFlags>();
  add_config_argument(*config, flags->config, " (default: none, which gives the defaults)");
  config->add_option("--set", flags->overrides, "Change a key, for example model.kind=mlp (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  config->footer("\nWhat it prints is a configuration itself, which strait train takes.");
  config->callback([&action, flags] { action = [flags] { return run_config(*flags); }; });
}

}  // namespace strait::cli
