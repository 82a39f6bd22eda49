#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/config_argument.h"
#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/plan_output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/doctor/link_file.h"

namespace strait::cli {
namespace {

struct PlanFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::vector<std::string> bandwidths;
  std::vector<std::string> latencies;
  std::string links;
  std::string stages;
  std::string measured;
  bool inline_codec = false;
  bool json = false;
};

/// Every bandwidth with every latency.
std::vector<LinkRate> links_of(const PlanFlags& flags) {
  std::vector<LinkRate> links;
  for (const auto& bandwidth : flags.bandwidths) {
    for (const auto& latency : flags.latencies) {
      links.push_back({parse_bandwidth(bandwidth, "--bandwidth"), parse_seconds(latency, "--latency")});
    }
  }
  return links;
}

/// `train.epochs = 3`, or that the configuration's kinds have no such key.
std::string setting_in(const Config& config, const std::string& key) {
  for (const auto& [name, value] : key_values(config)) {
    if (name == key) return fmt::format("{} = {}", name, value);
  }
  return "no " + key;
}

/// The configuration of the command line, of the measured run, or of both, which must agree.
Config given_config(const PlanFlags& flags) {
  if (flags.measured.empty()) {
    if (flags.config.empty()) throw InputError("plan: expected CONFIG.toml or --measured DIR");
    return load_config(config_file(flags.config), flags.overrides);
  }
  const std::string recorded = (std::filesystem::path(flags.measured) / "config.toml").string();
  Config config = load_config(recorded);
  const auto other = config_file(flags.config.empty() ? recorded : flags.config);
  const Config asked = load_config(other, flags.overrides);
  if (const auto key = differing_key(config, asked)) {
    throw InputError("--measured: {} has {}, the command line {}; expected the same configuration", recorded,
                     setting_in(config, *key), setting_in(asked, *key));
  }
  return config;
}

Config config_of(const PlanFlags& flags) {
  Config config = given_config(flags);
  if (config.pipeline.replicas == 1) return config;
  throw InputError(
      "pipeline.replicas: expected 1, because only the step of one pipeline can be predicted; found {}",
      config.pipeline.replicas);
}

/// Measures here, and takes from the run what it has measured itself.
void measure_into(PlanReport& report, const std::string& run_folder) {
  const auto candidates = candidates_for(report.config);
  if (run_folder.empty()) {
    report.measurement = measure(report.config, candidates);
    return;
  }
  const RunMeasurement run = read_measurement(report.config, run_folder);
  report.measurement = measure(report.config, candidates);
  report.measurement.stages = run.stages;
  report.measurement.own() = run.own;
  report.run = {run_folder, static_cast<double>(report.config.data.batch_size) / run.samples_per_second};
}

int run_plan(const PlanFlags& flags) {
  const auto links = links_of(flags);
  PlanReport report;
  report.config = config_of(flags);
  int stages = static_cast<int>(report.config.model.cuts.size()) + 1;
  if (!flags.stages.empty()) {
    stages = static_cast<int>(parse_integer(flags.stages, "--stages", 1, kMaxStages));
    report.assumed_stages = stages;
  }
  const Predictor predictor(report.config, stages,
                            flags.inline_codec ? CodecPlace::compute_thread : CodecPlace::own_threads);
  report.ranks = predictor.plan().ranks.size();
  report.weight_versions = predictor.weight_versions();
  if (!flags.links.empty()) {
    const auto boundaries =
        boundaries_for(read_link_file(flags.links), flags.links, report.config, static_cast<int>(report.ranks));
    report.measured_links = {flags.links, boundaries};
  }
  measure_into(report, flags.measured);
  if (report.assumed_stages) {
    report.measurement = stretched(report.measurement, stages);
    report.run.reset();  // it is of another pipeline
  }
  const auto boundary_links = report.measured_links.links();
  for (const auto& link : links) {
    report.links.push_back(predictor.predict(report.measurement, link, boundary_links));
    report.ideal_seconds.push_back(
        predictor.ideal_seconds(report.measurement.stages, report.measurement.own(), link, boundary_links));
  }
  print(flags.json ? plan_json(report) : plan_text(report));
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto* plan = app.add_subcommand(
      "plan", "Predict the time of a training step over a link, with each codec, and what bounds it");
  auto flags = std::make_shared<PlanFlags>();
  flags->bandwidths = {"unlimited"};
  flags->latencies = {"0"};
  add_config_argument(*plan, flags->config, "; not needed with --measured");
  const auto add_list = [&](const char* name, std::vector<std::string>& values, const char* about,
                            const char* type) {
    return plan->add_option(name, values, about)->type_name(type)->allow_extra_args(false);
  };
  add_list("--set", flags->overrides, "Change a key, for example pipeline.micro_batches=8 (may be repeated)",
           "KEY=VALUE");
  auto* bandwidth = add_list(
      "--bandwidth", flags->bandwidths,
      "Bandwidth at which a process sends, for example 100Mbps or unlimited (default: unlimited; may be "
      "repeated)",
      "RATE");
  auto* latency = add_list("--latency", flags->latencies,
                           "Latency of every message, for example 20ms (default: 0; may be repeated)", "TIME");
  auto* stages =
      plan->add_option("--stages", flags->stages, "Pretend that the network is cut into N stages of equal cost")
          ->check(not_empty())
          ->type_name("N");
  plan->add_option(
          "--links", flags->links,
          "Take the bandwidth and latency of every boundary, each way, from what strait doctor --ranks "
          "--out has measured")
      ->check(not_empty())
      ->type_name("FILE")
      ->excludes(bandwidth)
      ->excludes(latency)
      ->excludes(stages);
  plan->add_option("--measured", flags->measured,
                   "Take times and sizes from the last epoch of this run, and compare with it")
      ->check(not_empty())
      ->type_name("DIR");
  plan->add_flag("--inline-codec", flags->inline_codec,
                 "Encode and decode in the computing thread, not in threads of their own");
  plan->add_flag("--json", flags->json, "Print one JSON object");
  plan->callback([&action, flags] { action = [flags] { return run_plan(*flags); }; });
}

}  // namespace strait::cli
