#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "strait/base/units.h"
#include "strait/report/networks.h"
#include "strait/report/statistics.h"
#include "strait/report/writers.h"

namespace strait::report {
namespace {

using nlohmann::json;

json json_of(Value value) { return value ? json(*value) : json(); }

json json_of(const Estimate& value) { return {json_of(value.mean), json_of(value.error), value.count}; }

/// With six digits, more than a picture shows and a simulation is good for: a page may have a million of them.
double rounded(double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const double unit = std::pow(10.0, 5 - std::floor(std::log10(std::abs(value))));
  const double shorter = std::round(value * unit) / unit;
  return std::isfinite(shorter) ? shorter : value;  // the unit of a tiny one is beyond what a double holds
}

json rounded(Value value) { return value ? json(rounded(*value)) : json(); }

json json_of(const Curve& curve) {
  json points = json::array();
  for (const auto& [place, value] : curve) {
    points.push_back({place, rounded(value.mean), rounded(value.error), value.count});
  }
  return points;
}

/// As a text, because a script's numbers tell no two seeds beyond 2^53 apart.
json seed_json(uint64_t seed) { return std::to_string(seed); }

/// The run's evaluations with the seconds of training until then, network by network.
json timed_json(const Run& run, const Metric& metric) {
  json scores = json::array();
  for (const auto& score : timed_scores(run)) {
    json seconds = json::array();
    for (const double value : score.seconds) seconds.push_back(rounded(value));
    scores.push_back({{"steps", score.steps},
                      {"off", json_of(find(*score.off, metric.name))},
                      {"on", json_of(find(*score.on, metric.name))},
                      {"seconds", std::move(seconds)}});
  }
  return scores;
}

json networks_json() {
  json rates = json::array();
  for (const auto rate : kNetworkRates) {
    const double bytes = parse_bandwidth(rate, "rate");
    rates.push_back(
        {{"text", bandwidth_text(bytes)}, {"bits_per_second", std::isinf(bytes) ? json() : json(8 * bytes)}});
  }
  json latencies = json::array();
  for (const auto latency : kNetworkLatencies)
    latencies.push_back(duration_text(parse_seconds(latency, "latency")));
  return {{"rates", std::move(rates)}, {"latencies", std::move(latencies)}};
}

/// A run that began with another's weights has no lines of the epochs before.
int64_t epochs_done(const Run& run) { return run.epochs.empty() ? 0 : int64_t{run.epochs.back().number} + 1; }

json json_of(const Run& run, const Metric& metric) {
  return {{"folder", run.folder},
          {"seed", seed_json(run.seed)},
          {"status", to_string(run.status)},
          {"error", run.error},
          {"config", run.config},
          {"config_hash", run.config_hash},
          {"code_version", run.code_version},
          {"machine", run.machine},
          {"updated", run.updated},
          {"epochs_done", epochs_done(run)},
          {"epochs", run.epochs_planned},
          {"timed", timed_json(run, metric)}};
}

json traffic_json(const Variant& variant) {
  json rows = json::array();
  for (const auto& row : step_traffic(variant)) {
    rows.push_back({{"boundary", row.boundary},
                    {"activations", json_of(row.wire_activations)},
                    {"gradients", json_of(row.wire_gradients)}});
  }
  return rows;
}

using Direction = Traffic Boundary::*;

/// The traffic of a boundary in an epoch, or nothing.
const Traffic* traffic_at(const Epoch& epoch, const std::string& boundary, Direction direction) {
  for (const auto& candidate : epoch.boundaries) {
    if (candidate.name == boundary) return &(candidate.*direction);
  }
  return nullptr;
}

/// The boundaries of a variant in their order, and the quantities that were measured at any of them.
struct Measured {
  std::vector<std::string> boundaries;
  std::set<std::string> quantities;
};

Measured measured(const Variant& variant) {
  Measured found;
  for (const auto& run : variant.runs) {
    for (const auto& epoch : run.epochs) {
      for (const auto& boundary : epoch.boundaries) {
        if (std::ranges::find(found.boundaries, boundary.name) == found.boundaries.end()) {
          found.boundaries.push_back(boundary.name);
        }
        for (const auto& [name, value] : boundary.activations.diagnostics) found.quantities.insert(name);
        for (const auto& [name, value] : boundary.gradients.diagnostics) found.quantities.insert(name);
      }
    }
  }
  return found;
}

/// By quantity, a curve for each boundary and direction at which it was measured.
json diagnostics_json(const Variant& variant) {
  const Measured found = measured(variant);
  json quantities = json::object();
  for (const auto& quantity : found.quantities) {
    json& lines = quantities[quantity] = json::array();
    for (const auto& boundary : found.boundaries) {
      const auto add = [&](const char* name, Direction direction) {
        const Curve line = curve(variant, [&](const Epoch& epoch) {
          const Traffic* traffic = traffic_at(epoch, boundary, direction);
          return traffic == nullptr ? std::nullopt : find(traffic->diagnostics, quantity);
        });
        if (line.empty()) return;
        lines.push_back({{"boundary", boundary}, {"direction", name}, {"points", json_of(line)}});
      };
      add("activations", &Boundary::activations);
      add("gradients", &Boundary::gradients);
    }
  }
  return quantities;
}

/// By mode, what the counted seeds scored at the last epoch that they share.
json seeds_json(const Variant& variant, const Metric& metric, const std::vector<Scoring>& scorings) {
  json modes = json::object();
  for (const auto& scoring : scorings) {
    json& mode = modes[scoring.name] = {{"epoch", nullptr}, {"rows", json::array()}};
    for (const auto& [seed, epoch, scores] : last_of_seeds(variant, scoring.mode)) {
      mode["epoch"] = epoch;
      mode["rows"].push_back({{"seed", seed_json(seed)},
                              {"score", json_of(find(*scores, metric.name))},
                              {"loss", json_of(find(*scores, kLoss.name))}});
    }
  }
  return modes;
}

json json_of(const Variant& variant, const Metric& metric, const std::vector<Scoring>& scorings) {
  json runs = json::array();
  for (const auto& run : variant.runs) runs.push_back(json_of(run, metric));
  const auto score = [&](Scores Epoch::*scores) {
    return curve(variant, [&](const Epoch& epoch) { return find(epoch.*scores, metric.name); });
  };
  const Summary row = summarise(variant, metric);
  return {{"name", variant.name},
          {"runs", std::move(runs)},
          {"last", {{"off", json_of(row.off.last)}, {"on", json_of(row.on.last)}}},
          {"seeds", seeds_json(variant, metric, scorings)},
          {"is_done", std::ranges::find(variant.runs, Status::done, &Run::status) != variant.runs.end()},
          {"wire", json_of(row.wire_bytes_per_step)},
          {"ratio", json_of(row.ratio)},
          {"train_loss", json_of(curve(variant, [](const Epoch& epoch) { return epoch.train_loss; }))},
          {"off", json_of(score(&Epoch::off))},
          {"on", json_of(score(&Epoch::on))},
          {"steps",
           {{"off", json_of(loss_over_steps(variant, &StepScores::off))},
            {"on", json_of(loss_over_steps(variant, &StepScores::on))}}},
          {"traffic", traffic_json(variant)},
          {"diagnostics", diagnostics_json(variant)}};
}

/// No character of it can end a script element or begin a comment; bytes that are not UTF-8 become U+FFFD.
std::string script_safe(const json& value) {
  const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) {
    if (c == '<' || c == '>' || c == '&') {
      safe += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string page_data(const std::vector<Table>& tables) {
  json all = json::array();
  for (const auto& table : tables) {
    const Metric metric = metric_of(table);
    json variants = json::array();
    const auto scorings = scorings_of(table);
    for (const auto& variant : table.variants) variants.push_back(json_of(variant, metric, scorings));
    all.push_back({{"title", table.title},
                   {"metric",
                    {{"label", metric.name},
                     {"unit", metric.unit},
                     {"higher_is_better", metric.higher_is_better},
                     {"rises_with_loss", metric.rises_with_loss}}},
                   {"variants", std::move(variants)}});
  }
  return script_safe({{"tables", std::move(all)}, {"networks", networks_json()}});
}

}  // namespace strait::report
