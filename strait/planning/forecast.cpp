#include "strait/planning/forecast.h"

#include <algorithm>

namespace strait {

std::optional<double> seconds_left(std::span<const RunPace> runs, int jobs) {
  int timed = 0;
  int left = 0;
  int longest = 0;
  double seconds = 0;
  for (const auto& run : runs) {
    timed += run.epochs_timed;
    seconds += run.seconds;
    left += run.epochs_left;
    longest = std::max(longest, run.epochs_left);
  }
  if (timed == 0) return std::nullopt;
  return seconds / timed * std::max(static_cast<double>(left) / jobs, static_cast<double>(longest));
}

}  // namespace strait
