#include "strait/report/statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "strait/base/statistics.h"

namespace strait::report {
namespace {

using ScoresOf = Scores Epoch::*;

Value best(const Variant& variant, const Metric& metric, ScoresOf scores) {
  Value found;
  for (const auto& run : variant.runs) {
    for (const auto& epoch : run.epochs) {
      const Value value = find(epoch.*scores, metric.name);
      if (value && (!found || (metric.higher_is_better ? *value > *found : *value < *found))) found = value;
    }
  }
  return found;
}

/// Of all seeds: nothing where the measure of one of them is not finite, since a mean over the others would be
/// of the lucky ones.
Estimate mean_of(const std::vector<SeedScores>& seeds, const Metric& metric) {
  std::vector<double> values;
  for (const auto& seed : seeds) {
    const Value value = find(*seed.scores, metric.name);
    if (!value) return {};
    values.push_back(*value);
  }
  return estimate(values);
}

/// Nothing where it was past what a double holds.
Value finite(double value) { return std::isfinite(value) ? Value(value) : std::nullopt; }

Value ratio(Value raw, Value wire) { return raw && wire && *wire > 0 ? Value(*raw / *wire) : std::nullopt; }

Value plus(Value one, Value other) { return one ? Value(*one + other.value_or(0)) : other; }

/// Mean over the last epochs of what `take` gives for each.
template <class Take>
Value mean_of_last(const std::vector<const Run*>& runs, Take take) {
  std::vector<double> values;
  for (const auto* run : runs) {
    if (!run->epochs.empty() && run->epochs.back().steps > 0) values.push_back(take(run->epochs.back()));
  }
  return estimate(values).mean;
}

Value sum(const std::vector<StepTraffic>& traffic, Value StepTraffic::*bytes) {
  Value total;
  for (const auto& boundary : traffic) total = total.value_or(0) + (boundary.*bytes).value_or(0);
  return total;
}

std::string list_of_evaluations(std::span<const Variant> variants) {
  std::set<std::string> names;
  for (const auto& variant : variants) {
    for (const auto& run : variant.runs) {
      for (const auto& epoch : run.epochs) {
        if (!epoch.on.empty()) names.insert(epoch.evaluation);
      }
    }
  }
  return names.empty() ? "plain" : fmt::format("{}", fmt::join(names, " or "));
}

bool is_scored(const Table& table, ScoresOf mode) {
  return std::ranges::any_of(table.variants, [&](const Variant& variant) {
    return std::ranges::any_of(variant.runs, [&](const Run& run) {
      return std::ranges::any_of(run.epochs, [&](const Epoch& epoch) { return !(epoch.*mode).empty(); });
    });
  });
}

double seconds_of(const Run& run) {
  return std::accumulate(run.epochs.begin(), run.epochs.end(), 0.0,
                         [](double sum, const Epoch& epoch) { return sum + epoch.seconds; });
}

}  // namespace

Metric metric_of(const Table& table) {
  const auto is_known = [&](const Metric& metric) {
    return std::ranges::any_of(
        table.variants, [&](const Variant& variant) { return best(variant, metric, &Epoch::off).has_value(); });
  };
  for (const Metric& metric : all_metrics()) {
    if (is_known(metric)) return metric;
  }
  return is_known(kLoss) ? kLoss : kAccuracy;
}

std::vector<StatusCount> count_statuses(const std::vector<Status>& statuses) {
  std::vector<StatusCount> counts;
  for (const auto status : kStatuses) {
    const auto runs = std::ranges::count(statuses, status);
    if (runs > 0) counts.push_back({status, static_cast<int>(runs)});
  }
  return counts;
}

Estimate estimate(const std::vector<double>& values) {
  Estimate result;
  result.count = static_cast<int>(values.size());
  if (values.empty()) return result;
  result.mean = finite(mean(values));
  if (values.size() > 1) result.error = finite(standard_error(values));
  return result;
}

std::vector<const Run*> counted_runs(const Variant& variant) {
  std::vector<const Run*> done;
  std::vector<const Run*> under_way;
  for (const auto& run : variant.runs) {
    if (run.status == Status::done) done.push_back(&run);
    if ((run.status == Status::running || run.status == Status::stopped) && !run.epochs.empty()) {
      under_way.push_back(&run);
    }
  }
  return done.empty() ? under_way : done;
}

std::vector<StepTraffic> step_traffic(const Variant& variant) {
  const auto runs = counted_runs(variant);
  std::vector<StepTraffic> traffic;
  if (runs.empty() || runs.front()->epochs.empty()) return traffic;
  for (const auto& named : runs.front()->epochs.back().boundaries) {
    const auto mean = [&](Traffic Boundary::*direction, double Traffic::*bytes) {
      return mean_of_last(runs, [&](const Epoch& epoch) {
        const auto found = std::ranges::find(epoch.boundaries, named.name, &Boundary::name);
        return found == epoch.boundaries.end() ? 0.0 : (*found).*direction.*bytes / epoch.steps;
      });
    };
    traffic.push_back({named.name, mean(&Boundary::activations, &Traffic::raw_bytes),
                       mean(&Boundary::activations, &Traffic::wire_bytes),
                       mean(&Boundary::gradients, &Traffic::raw_bytes),
                       mean(&Boundary::gradients, &Traffic::wire_bytes)});
  }
  return traffic;
}

std::vector<SeedScores> last_of_seeds(const Variant& variant, Scores Epoch::*mode) {
  const auto runs = counted_runs(variant);
  std::map<int, std::vector<SeedScores>> by_epoch;
  for (const auto* run : runs) {
    for (const auto& epoch : run->epochs) {
      const Scores& scores = epoch.*mode;
      if (!scores.empty()) by_epoch[epoch.number].push_back({run->seed, epoch.number, &scores});
    }
  }
  std::erase_if(by_epoch, [&](const auto& epoch) { return epoch.second.size() < runs.size(); });
  return by_epoch.empty() ? std::vector<SeedScores>() : by_epoch.rbegin()->second;
}

Scored scored(const Variant& variant, const Metric& metric, Scores Epoch::*mode) {
  const auto seeds = last_of_seeds(variant, mode);
  return {best(variant, metric, mode), mean_of(seeds, metric), mean_of(seeds, kLoss)};
}

std::string evaluation_of(const Variant& variant) { return list_of_evaluations(std::span(&variant, 1)); }

std::string evaluation_of(const Table& table) { return list_of_evaluations(table.variants); }

std::vector<Scoring> scorings_of(const Table& table) {
  const std::string named = evaluation_of(table);
  std::vector<Scoring> all = {{"off", "off", &Epoch::off}, {"on", fmt::format("on ({})", named), &Epoch::on}};
  for (const auto& [name, scores] : kModes) {
    if (name != named && is_scored(table, scores))
      all.push_back({std::string(name), std::string(name), scores});
  }
  return all;
}

Summary summarise(const Variant& variant, const Metric& metric) {
  const auto runs = counted_runs(variant);
  const auto traffic = step_traffic(variant);
  const Value wire_activations = sum(traffic, &StepTraffic::wire_activations);
  const Value wire_gradients = sum(traffic, &StepTraffic::wire_gradients);
  Summary summary;
  summary.off = scored(variant, metric, &Epoch::off);
  summary.on = scored(variant, metric, &Epoch::on);
  const Value raw_activations = sum(traffic, &StepTraffic::raw_activations);
  const Value raw_gradients = sum(traffic, &StepTraffic::raw_gradients);
  summary.ratio_activations = ratio(raw_activations, wire_activations);
  summary.ratio_gradients = ratio(raw_gradients, wire_gradients);
  summary.wire_bytes_per_step = plus(wire_activations, wire_gradients);
  summary.ratio = ratio(plus(raw_activations, raw_gradients), summary.wire_bytes_per_step);
  std::vector<double> seconds(runs.size());
  std::ranges::transform(runs, seconds.begin(), [](const Run* run) { return seconds_of(*run); });
  summary.seconds = estimate(seconds).mean;
  summary.seeds = static_cast<int>(
      std::max(last_of_seeds(variant, &Epoch::off).size(), last_of_seeds(variant, &Epoch::on).size()));
  std::vector<Status> statuses;
  for (const auto& run : variant.runs) statuses.push_back(run.status);
  summary.statuses = count_statuses(statuses);
  return summary;
}

Curve curve_of(const std::map<int64_t, std::vector<double>>& values) {
  Curve points;
  for (const auto& [place, measured] : values) points.push_back({place, estimate(measured)});
  return points;
}

Curve loss_over_steps(const Variant& variant, Scores StepScores::*scores) {
  std::map<int64_t, std::vector<double>> by_step;
  for (const auto& run : variant.runs) {
    for (const auto& epoch : run.epochs) {
      for (const auto& evaluation : epoch.evaluations) {
        if (const Value loss = find(evaluation.*scores, kLoss.name)) by_step[evaluation.step].push_back(*loss);
      }
    }
  }
  return curve_of(by_step);
}

Value find(const std::map<std::string, double>& values, std::string_view key) {
  const auto found = values.find(std::string(key));
  return found == values.end() ? std::nullopt : Value(found->second);
}

}  // namespace strait::report
