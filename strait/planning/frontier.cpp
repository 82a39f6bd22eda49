#include "strait/planning/frontier.h"

#include <algorithm>
#include <cmath>

#include "strait/base/error.h"
#include "strait/base/statistics.h"
#include "strait/base/text.h"
#include "strait/config/kinds.h"
#include "strait/planning/network_simulation.h"

namespace strait {
namespace {

std::vector<std::string> names_of_metrics(const Score& score) {
  std::vector<std::string> names = {std::string(kLoss.name)};
  for (const auto& [name, value] : score.metrics) names.push_back(name);
  return names;
}

/// Whether the score has the target; one that is no number has not.
bool has_target(const Evaluation& test, const QualityTarget& target, const std::string& origin) {
  const Score& score = target.off ? test.off : test.on;
  if (target.metric == kLoss.name) return score.loss <= target.value;
  const auto found = score.metrics.find(target.metric);
  if (found == score.metrics.end()) {
    throw InputError("{}: expected scores with the target's metric \"{}\", found {}", origin, target.metric,
                     list_of(names_of_metrics(score)));
  }
  return find_metric(target.metric)->higher_is_better ? found->second >= target.value
                                                      : found->second <= target.value;
}

/// The first step after which the target was there, counted from the beginning of the epoch, which began at
/// `begin`.
std::optional<uint64_t> step_with_target(const EpochMetrics& epoch, uint64_t begin, const QualityTarget& target,
                                         const std::string& origin) {
  for (const auto& [step, test] : epoch.evaluations) {
    if (has_target(test, target, origin)) return step - std::min(step, begin);
  }
  if (epoch.test && has_target(*epoch.test, target, origin)) return static_cast<uint64_t>(epoch.steps);
  return std::nullopt;
}

double bytes_of(const EpochMetrics& epoch) {
  return static_cast<double>(epoch.total(Direction::activation).wire_bytes +
                             epoch.total(Direction::gradient).wire_bytes);
}

bool is_compressed(const TrainedRun& run) {
  return std::ranges::any_of(run.epochs, [](const EpochMetrics& epoch) {
    Traffic all = epoch.total(Direction::activation);
    all += epoch.total(Direction::gradient);
    return all.wire_bytes < all.raw_bytes;
  });
}

/// What makes scores comparable.
std::string task_of_run(const TrainedRun& run) {
  for (const auto& epoch : run.epochs) {
    if (!epoch.test) continue;
    return fmt::format("data.kind {} with {}", run.config.data.kind, list_of(names_of_metrics(epoch.test->on)));
  }
  return "";
}

void check_tasks(const std::vector<TrainedVariant>& variants) {
  const TrainedRun* first = nullptr;
  for (const auto& variant : variants) {
    for (const auto& run : variant.runs) {
      if (task_of_run(run).empty()) continue;
      if (first == nullptr) first = &run;
      if (task_of_run(run) == task_of_run(*first)) continue;
      throw InputError("{}: expected the task of {}, {}; found {}", run.origin, first->origin,
                       task_of_run(*first), task_of_run(run));
    }
  }
}

NetworkSimulation simulation_of(const TrainedRun& run) {
  try {
    return NetworkSimulation(run.config);
  } catch (const InputError& error) {
    throw InputError("{}: {}", run.origin, error.what());
  }
}

FrontierRow row_of(const TrainedVariant& variant, const QualityTarget& target, const NetworkOptions& network) {
  FrontierRow row{.variant = variant.name, .seeds = static_cast<int>(variant.runs.size())};
  std::vector<double> steps;
  std::vector<double> seconds;
  std::vector<double> bytes;
  for (const auto& run : variant.runs) {
    row.is_compressed |= is_compressed(run);
    const auto time = time_to_target(run, target, network);
    if (!time) continue;
    steps.push_back(static_cast<double>(time->steps));
    seconds.push_back(time->seconds);
    bytes.push_back(time->bytes);
  }
  row.reached = static_cast<int>(steps.size());
  if (row.reached == 0) return row;
  row.steps = mean(steps);
  row.seconds = mean(seconds);
  row.seconds_error = standard_error(seconds);
  row.step_seconds = row.seconds / row.steps;
  row.bytes = mean(bytes);
  return row;
}

}  // namespace

QualityTarget parse_quality_target(const std::string& text, const std::string& what) {
  std::vector<std::string> names = {std::string(kLoss.name)};
  for (const auto& metric : all_metrics()) names.emplace_back(metric.name);
  const size_t equals = text.find('=');
  QualityTarget target{.metric = text.substr(0, equals)};
  if (equals == std::string::npos || std::ranges::find(names, target.metric) == names.end()) {
    throw InputError("{}: expected {} and a value, such as loss=1.4; found \"{}\"", what, alternatives(names),
                     text);
  }
  const std::string behind = text.substr(equals + 1);
  const auto value = parse_number<double>(behind);
  if (!value || !std::isfinite(*value)) {
    throw InputError("{}: expected a number behind \"{}=\", found \"{}\"", what, target.metric, behind);
  }
  target.value = *value;
  return target;
}

std::optional<TimeToTarget> time_to_target(const TrainedRun& run, const QualityTarget& target,
                                           const NetworkOptions& network) {
  if (!run.epochs.empty() && run.epochs.front().epoch != 0) {
    throw InputError(
        "{}: expected a run from epoch 0 on, found epoch {} at its beginning; the time of those before is "
        "another run's",
        run.origin, run.epochs.front().epoch);
  }
  const NetworkSimulation simulation = simulation_of(run);
  TimeToTarget so_far;
  for (const auto& epoch : run.epochs) {
    const auto all = static_cast<uint64_t>(epoch.steps);
    const auto found = step_with_target(epoch, so_far.steps, target, run.origin);
    const uint64_t steps = found.value_or(all);
    so_far.steps += steps;
    so_far.seconds += static_cast<double>(steps) * simulation.step_seconds(epoch, network, run.origin);
    so_far.bytes +=
        bytes_of(epoch) * static_cast<double>(steps) / static_cast<double>(std::max<uint64_t>(all, 1));
    if (found) return so_far;
  }
  return std::nullopt;
}

std::vector<FrontierRow> frontier(const std::vector<TrainedVariant>& variants, const QualityTarget& target,
                                  const NetworkOptions& network) {
  check_tasks(variants);
  std::vector<FrontierRow> rows;
  rows.reserve(variants.size());
  for (const auto& variant : variants) rows.push_back(row_of(variant, target, network));
  std::ranges::stable_sort(rows, [](const FrontierRow& one, const FrontierRow& other) {
    if ((one.reached > 0) != (other.reached > 0)) return one.reached > 0;
    return one.reached > 0 && one.seconds < other.seconds;
  });
  return rows;
}

const FrontierRow* none_of(const std::vector<FrontierRow>& rows) {
  const auto found =
      std::ranges::find_if(rows, [](const FrontierRow& row) { return !row.is_compressed && row.reached > 0; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace strait
