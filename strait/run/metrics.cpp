#include "strait/run/metrics.h"

#include <algorithm>

namespace strait {

const Metric* judge_of(const Score& score) {
  for (const Metric& metric : all_metrics()) {
    if (score.metrics.contains(std::string(metric.name))) return &metric;
  }
  return nullptr;
}

bool is_better(const Score& score, const Score& than) {
  const Metric* judge = judge_of(score);
  if (judge == nullptr || judge->rises_with_loss) return score.loss < than.loss;
  return judge->higher_is_better ? score.at(*judge) > than.at(*judge) : score.at(*judge) < than.at(*judge);
}

void add_traffic(std::vector<BoundaryTraffic>& sum, const std::vector<BoundaryTraffic>& part) {
  for (const auto& boundary : part) {
    auto found = std::ranges::find(sum, boundary.name, &BoundaryTraffic::name);
    if (found == sum.end())
      found = sum.insert(found, {.name = boundary.name, .activations = {}, .gradients = {}});
    found->activations += boundary.activations;
    found->gradients += boundary.gradients;
    if (boundary.activation_diagnostics) found->activation_diagnostics = boundary.activation_diagnostics;
    if (boundary.gradient_diagnostics) found->gradient_diagnostics = boundary.gradient_diagnostics;
  }
}

Traffic EpochMetrics::total(Direction direction) const {
  Traffic sum;
  for (const auto& boundary : boundaries) {
    sum += direction == Direction::activation ? boundary.activations : boundary.gradients;
  }
  return sum;
}

}  // namespace strait
