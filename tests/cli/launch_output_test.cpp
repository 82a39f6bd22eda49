#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using LaunchOutput = test::TinyRuns;

TEST_F(LaunchOutput, QuietLeavesTheResultAlone) {
  const auto run = test::run_process(STRAIT_PROGRAM, {"launch", "-n", "4", "-q", "--", "train", config_,
                                                      "--out", dir_ / "run", "--set", "train.epochs=1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, testing::MatchesRegex("\\[0\\] done after 1 epoch: [^\n]*\n"));
}

TEST_F(LaunchOutput, ADryRunSaysWhatEachRankRuns) {
  const auto run = test::run_process(
      STRAIT_PROGRAM, {"launch", "-n", "4", "--dry-run", "--", "train", config_, "--out", dir_ / "run"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, testing::HasSubstr("[0] stages       4 stages in 4 processes"));
  for (const std::string rank : {"0", "1", "2", "3"}) {
    EXPECT_THAT(run.out, testing::HasSubstr("[" + rank + "] rank " + rank + " of 4: stage " + rank + " ("));
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  const auto wrong = test::run_process(
      STRAIT_PROGRAM, {"launch", "-n", "3", "--dry-run", "--", "train", config_, "--out", dir_ / "run"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.out + wrong.err, testing::HasSubstr("expected 4 processes"));
}

}  // namespace
}  // namespace strait
