#include "strait/planning/frontier.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/link_rate.h"
#include "strait/base/rule.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/planning/network_simulation.h"
#include "strait/report/tables.h"
#include "strait/run/reader.h"

namespace strait::cli {
namespace {

using Json = nlohmann::ordered_json;

struct FrontierFlags {
  std::vector<std::filesystem::path> folders;
  std::string network;
  std::string target;
  std::string score = "on";
  double compute = 1;
  std::string stages;  ///< numbers with commas between; empty: what each run has measured
  bool json = false;
};

/// The runs that came to their end, by variant, and how many others there are.
struct FinishedRuns {
  std::vector<TrainedVariant> variants;
  int others = 0;
};

FinishedRuns read_runs(const std::vector<std::filesystem::path>& folders) {
  FinishedRuns found;
  const auto tables = report::read_tables(folders);
  for (const auto& table : tables) {
    for (const auto& variant : table.variants) {
      TrainedVariant trained{.name = tables.size() > 1 ? table.name + " " + variant.name : variant.name,
                             .runs = {}};
      for (const auto& run : variant.runs) {
        if (!is_final(run.status)) {
          ++found.others;
          continue;
        }
        trained.runs.push_back({.origin = (run.path / "metrics.jsonl").string(),
                                .config = parse_config(run.config, (run.path / "config.toml").string()),
                                .epochs = read_epochs(run.path, run.status == report::Status::done)});
      }
      if (!trained.runs.empty()) found.variants.push_back(std::move(trained));
    }
  }
  if (found.variants.empty())
    throw InputError("{}: expected a run that has ended, found none", folders.front().string());
  return found;
}

/// The names of the networks that the runs have.
std::vector<std::string> known_networks(const std::vector<TrainedVariant>& variants) {
  std::set<std::string> names;
  for (const auto& variant : variants) {
    for (const auto& run : variant.runs) {
      for (const auto& network : run.config.networks) names.insert(network.name);
    }
  }
  return {names.begin(), names.end()};
}

/// A network of which the flag gives the links.
NetworkOptions unnamed_network(const std::string& links, const std::vector<TrainedVariant>& variants) {
  try {
    parse_link_rate(links, "--network");
  } catch (const InputError& error) {
    const auto names = known_networks(variants);
    throw InputError("{}; or one of the runs' networks, which are {}{}", error.what(),
                     names.empty() ? "none" : list_of(names), suggestion(links, names));
  }
  const size_t comma = links.find(',');
  NetworkOptions network{.name = links, .bandwidth = links.substr(0, comma)};
  if (comma != std::string::npos) network.latency = links.substr(comma + 1);
  return network;
}

/// The network of that name in the runs' configurations, which must agree; nothing where none has it.
std::optional<NetworkOptions> named_network(const std::string& name,
                                            const std::vector<TrainedVariant>& variants) {
  std::optional<NetworkOptions> known;
  for (const auto& variant : variants) {
    for (const auto& run : variant.runs) {
      const auto own = std::ranges::find(run.config.networks, name, &NetworkOptions::name);
      if (own == run.config.networks.end()) continue;
      if (known && *known != *own)
        throw InputError("--network: {} has another network \"{}\" than the runs before it", run.origin, name);
      known = *own;
    }
  }
  return known;
}

/// Of the value of --stages.
std::vector<double> stage_seconds(const std::string& text) {
  std::vector<double> seconds;
  for (const auto& stage : split(text, ',')) seconds.push_back(parse_number<double>(stage).value());
  return seconds;
}

NetworkOptions network_of(const FrontierFlags& flags, const std::vector<TrainedVariant>& variants) {
  const auto known = named_network(flags.network, variants);
  NetworkOptions network = known ? *known : unnamed_network(flags.network, variants);
  double faster = flags.compute;  // than the stages' seconds say
  if (!flags.stages.empty()) {
    network.stage_seconds = stage_seconds(flags.stages);
    faster *= network.compute;
  }
  if (network.stage_seconds.empty()) {
    network.compute *= flags.compute;
    return network;
  }
  for (const auto& variant : variants) {
    for (const auto& run : variant.runs) {
      const size_t stages = run.config.model.cuts.size() + 1;
      if (network.stage_seconds.size() == stages) continue;
      throw InputError(
          "{}: expected the seconds of {}, as {} has, found {}",
          flags.stages.empty() ? "--network: stage_seconds of \"" + network.name + "\"" : "--stages",
          count_text(static_cast<int64_t>(stages), "stage"), run.origin, network.stage_seconds.size());
    }
  }
  for (double& seconds : network.stage_seconds) seconds /= faster;
  network.compute = 1;
  return network;
}

std::string target_text(const QualityTarget& target) {
  const bool is_more = target.metric != "loss" && find_metric(target.metric)->higher_is_better;
  return fmt::format("{} {} {} on the test set, compression {}", target.metric,
                     is_more ? ">=" : "<=", target.value, target.off ? "off" : "on");
}

/// Four digits of the mean, and as many of its error behind the point.
std::string time_text(const FrontierRow& row) {
  const double whole = row.seconds >= 1 ? std::floor(std::log10(row.seconds)) + 1 : 1;
  const int decimals = std::max(4 - static_cast<int>(whole), 0);
  if (row.reached == 1) return fmt::format("{:.{}f} s", row.seconds, decimals);
  return fmt::format("{:.{}f} +- {:.{}f} s", row.seconds, decimals, row.seconds_error, decimals);
}

std::string frontier_text(const std::vector<FrontierRow>& rows, const NetworkOptions& network,
                          const QualityTarget& target, int others) {
  std::string compute;
  if (network.compute != 1) compute = fmt::format(", stages {:.4g} times as fast as measured", network.compute);
  if (!network.stage_seconds.empty()) compute = ", stages as given";
  std::string text =
      fmt::format("over {}{}; {}\n", link_rate_text(link_of(network)), compute, target_text(target));
  size_t width = std::string_view("variant").size();
  for (const auto& row : rows) width = std::max(width, row.variant.size());
  text += fmt::format("{:<{}} {:>7} {:>9} {:>10} {:>20} {:>10} {:>9}\n", "variant", width, "seeds", "steps",
                      "step", "time to target", "bytes", "over none");
  const FrontierRow* none = none_of(rows);
  for (const auto& row : rows) {
    const std::string seeds =
        row.reached == row.seeds ? std::to_string(row.seeds) : fmt::format("{} of {}", row.reached, row.seeds);
    if (row.reached == 0) {
      text += fmt::format("{:<{}} {:>7} never reaches it\n", row.variant, width, seeds);
      continue;
    }
    text += fmt::format("{:<{}} {:>7} {:>9.0f} {:>10} {:>20} {:>10} {:>9}\n", row.variant, width, seeds,
                        row.steps, duration_text(row.step_seconds), time_text(row),
                        size_text(static_cast<uint64_t>(row.bytes)),
                        none == nullptr ? "" : fmt::format("{:.3f}", row.seconds / none->seconds));
  }
  if (others > 0) text += fmt::format("{} not ended and not counted\n", count_text(others, "run"));
  return text;
}

Json frontier_json(const std::vector<FrontierRow>& rows, const NetworkOptions& network,
                   const QualityTarget& target) {
  const LinkRate link = link_of(network);
  Json list = Json::array();
  const FrontierRow* none = none_of(rows);
  for (const auto& row : rows) {
    const auto if_reached = [&](double value) { return row.reached > 0 ? Json(value) : Json(); };
    list.push_back({{"variant", row.variant},
                    {"seeds", row.seeds},
                    {"reached", row.reached},
                    {"steps", if_reached(row.steps)},
                    {"step_seconds", if_reached(row.step_seconds)},
                    {"seconds", if_reached(row.seconds)},
                    {"seconds_se", row.reached > 1 ? Json(row.seconds_error) : Json()},
                    {"bytes", if_reached(row.bytes)},
                    {"over_none", none == nullptr ? Json() : if_reached(row.seconds / none->seconds)}});
  }
  const Json rate = std::isinf(link.bytes_per_second) ? Json() : Json(8 * link.bytes_per_second);
  return {{"network",
           {{"name", network.name},
            {"bandwidth_bits_per_second", rate},
            {"latency_seconds", link.latency_seconds},
            {"compute", network.compute},
            {"stage_seconds", network.stage_seconds}}},
          {"target", {{target.metric, target.value}}},
          {"score", target.off ? "off" : "on"},
          {"rows", std::move(list)}};
}

/// For the value of a flag: one number, or several with commas between.
CLI::Validator positive_numbers(bool several) {
  const auto complaint = [several](const std::string& text) -> std::string {
    for (const auto& part : several ? split(text, ',') : std::vector<std::string>{text}) {
      const auto number = parse_number<double>(part);
      if (!number || !positive()(*number).empty())
        return fmt::format("expected a number > 0, found \"{}\"", part);
    }
    return "";
  };
  return {complaint, ""};
}

int run_frontier(const FrontierFlags& flags) {
  QualityTarget target = parse_quality_target(flags.target, "--target");
  target.off = flags.score == "off";
  const FinishedRuns runs = read_runs(flags.folders);
  const NetworkOptions network = network_of(flags, runs.variants);
  const auto rows = frontier(runs.variants, target, network);
  print(flags.json
            ? frontier_json(rows, network, target).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
            : frontier_text(rows, network, target, runs.others));
  return 0;
}

}  // namespace

void add_frontier(CLI::App& app, Action& action) {
  auto* verb = app.add_subcommand(
      "frontier",
      "Say which compression gets training to a quality soonest over a network, from runs that have ended");
  auto flags = std::make_shared<FrontierFlags>();
  verb->add_option("folders", flags->folders, "Folders of runs, of sweeps, or of several of those")
      ->required()
      ->type_name("DIR");
  verb->add_option(
          "--network", flags->network,
          "The links: a bandwidth and a latency such as 200Mbps,50ms, or the name of an entry of [[networks]]")
      ->required()
      ->type_name("RATE,TIME|NAME");
  verb->add_option("--target", flags->target,
                   "The quality on the test set, for example loss=1.4, accuracy=55 or perplexity=40")
      ->required()
      ->type_name("METRIC=VALUE");
  verb->add_option("--score", flags->score, "Whether compression is on or off in the test (default: on)")
      ->check(CLI::IsMember({"on", "off"}));
  verb->add_option("--compute", flags->compute,
                   "How many times faster than in the runs the stages compute (default: 1)")
      ->check(positive_numbers(/*several=*/false))
      ->type_name("N");
  verb->add_option("--stages", flags->stages,
                   "Seconds of each stage for a micro-batch, forward and backward together, the same for all "
                   "runs instead of "
                   "what each has measured")
      ->check(positive_numbers(/*several=*/true))
      ->type_name("S,S,...");
  verb->add_flag("--json", flags->json, "Print one JSON object");
  verb->callback([&action, flags] { action = [flags] { return run_frontier(*flags); }; });
}

}  // namespace strait::cli
