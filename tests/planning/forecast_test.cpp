#include "strait/planning/forecast.h"

#include <gtest/gtest.h>

#include <vector>

namespace strait {
namespace {

/// Each run as epochs left, epochs timed, seconds.
std::optional<double> left(const std::vector<RunPace>& runs, int jobs) { return seconds_left(runs, jobs); }

TEST(Forecast, SaysNothingBeforeTheFirstEpoch) {
  EXPECT_FALSE(left({{6, 0, 0}, {6, 0, 0}}, 1).has_value());
  EXPECT_FALSE(left({}, 1).has_value());
}

TEST(Forecast, TakesTheMeanPaceForAllThatIsLeft) {
  // 3 epochs in 30 s; 3 + 6 are left.
  EXPECT_EQ(left({{3, 3, 30}, {6, 0, 0}}, 1), 90.0);
}

TEST(Forecast, SharesTheWorkAmongTheJobs) {
  const std::vector<RunPace> runs = {{2, 2, 10}, {2, 2, 30}, {4, 0, 0}};
  EXPECT_EQ(left(runs, 2), 40.0);
}

TEST(Forecast, IsNoShorterThanTheLongestRun) {
  const std::vector<RunPace> runs = {{0, 4, 8}, {5, 0, 0}, {1, 0, 0}};
  EXPECT_EQ(left(runs, 4), 10.0);
}

TEST(Forecast, IsZeroWhenAllIsDone) { EXPECT_EQ(left({{0, 4, 8}}, 2), 0.0); }

}  // namespace
}  // namespace strait
