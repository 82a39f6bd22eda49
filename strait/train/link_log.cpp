#include "strait/train/link_log.h"

#include <fmt/format.h>

namespace strait {

std::vector<LinkMetrics> LinkLog::take() {
  std::vector<LinkMetrics> all;
  for (const LinkStatus& link : group_.links()) {
    if (link.peer > group_.rank()) continue;
    size_t& said = said_[link.peer];
    LinkMetrics metrics{
        .rank = group_.rank(), .peer = link.peer, .relayed = link.route == Route::relayed, .outages = 0};
    for (; said < link.outages.size(); ++said) {
      const auto& [begin, end] = link.outages[said];
      ++metrics.outages;
      metrics.seconds += std::chrono::duration<double>(end - begin).count();
      if (trace_ != nullptr) trace_->add(Lane::link, fmt::format("no link to rank {}", link.peer), begin, end);
    }
    if (metrics.relayed || metrics.outages > 0) all.push_back(metrics);
  }
  return all;
}

}  // namespace strait
