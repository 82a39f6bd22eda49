#include "strait/report/networks.h"

#include <algorithm>

namespace strait::report {
namespace {

bool has_times(const Run& run) {
  return !run.epochs.empty() && run.epochs.front().number == 0 &&
         std::ranges::all_of(run.epochs,
                             [](const Epoch& epoch) { return epoch.step_seconds.size() == kNetworks; });
}

/// `sum` and `steps` more steps, each as long as in the epoch.
std::vector<double> after(std::vector<double> sum, double steps, const Epoch& epoch) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += steps * epoch.step_seconds[i];
  return sum;
}

}  // namespace

std::vector<TimedScore> timed_scores(const Run& run) {
  std::vector<TimedScore> scores;
  if (!has_times(run)) return scores;
  double begin = 0;
  std::vector<double> seconds(kNetworks);
  for (const auto& epoch : run.epochs) {
    for (const auto& [step, off, on] : epoch.evaluations) {
      const double steps = std::max(step - begin, 0.0);
      scores.push_back({begin + steps, &off, &on, after(seconds, steps, epoch)});
    }
    begin += epoch.steps;
    seconds = after(std::move(seconds), epoch.steps, epoch);
    const bool is_known = !scores.empty() && scores.back().steps == begin;
    if (!is_known && !epoch.off.empty()) scores.push_back({begin, &epoch.off, &epoch.on, seconds});
  }
  return scores;
}

}  // namespace strait::report
