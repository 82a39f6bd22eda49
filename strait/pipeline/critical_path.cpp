#include "strait/pipeline/critical_path.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "strait/base/error.h"

namespace strait {

std::string_view TimeShares::largest() const {
  std::pair<double, std::string_view> best = {compute, "compute"};
  for (const auto& part : {std::pair<double, std::string_view>{bubble, "bubble"},
                           {codec, "codec"},
                           {wire, "wire"},
                           {latency, "latency"}}) {
    if (part.first > best.first) best = part;
  }
  return best.second;
}

Moment WorkLog::perform(Work work, const Moment& start, double seconds) {
  if (seconds == 0) return start;
  STRAIT_CHECK(entries_.size() < size_t{std::numeric_limits<int32_t>::max()}, "more work than can be counted");
  entries_.push_back({seconds, start.cause, work});
  return {start.time + seconds, static_cast<int32_t>(entries_.size() - 1)};
}

TimeShares WorkLog::shares_until(const Moment& end, double busiest) const {
  TimeShares shares;
  double* const parts[] = {&shares.compute, &shares.codec, &shares.wire,
                           &shares.latency};  // in the order of Work
  for (int32_t at = end.cause; at != Moment::kBeginning; at = entries_[static_cast<size_t>(at)].cause) {
    const Entry& entry = entries_[static_cast<size_t>(at)];
    *parts[static_cast<size_t>(entry.work)] += entry.seconds;
  }
  shares.bubble = std::max(0.0, shares.compute - busiest);
  shares.compute -= shares.bubble;
  return shares;
}

}  // namespace strait
