#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using LaunchVerbosity = test::TinyRuns;

TEST_F(LaunchVerbosity, QuietLeavesTheResultAlone) {
  const auto run = test::run_process(STRAIT_PROGRAM, {"launch", "-n", "4", "-q", "--", "train", config_,
                                                      "--out", dir_ / "run", "--set", "train.epochs=1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, testing::MatchesRegex("\\[0\\] done after 1 epoch: [^\n]*\n"));
}

}  // namespace
}  // namespace strait
