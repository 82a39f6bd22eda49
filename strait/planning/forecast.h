#pragma once

#include <optional>
#include <span>

namespace strait {

/// How far a run is, for a forecast.
struct RunPace {
  int epochs_left = 0;   ///< not done yet
  int epochs_timed = 0;  ///< those done since its process was started
  double seconds = 0;    ///< that they took
};

/// Seconds until all runs are done with `jobs` of them at once: the epochs that are left at the mean pace
/// of those done, shared by the jobs, and no less than the longest run takes alone. Nothing before the
/// first epoch is done. Runs whose epochs differ much in cost make it rough.
std::optional<double> seconds_left(std::span<const RunPace> runs, int jobs);

}  // namespace strait
