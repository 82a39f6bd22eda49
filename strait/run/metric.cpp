#include "strait/run/metric.h"

#include <algorithm>
#include <array>

namespace strait {
namespace {

constexpr std::array<Metric, 2> kAll = {kPerplexity, kAccuracy};

}  // namespace

std::span<const Metric> all_metrics() { return kAll; }

const Metric* find_metric(std::string_view name) {
  const auto* found = std::ranges::find(kAll, name, &Metric::name);
  return found == kAll.end() ? nullptr : found;
}

}  // namespace strait
