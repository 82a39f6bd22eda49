#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/cli/distributed_runs.h"

namespace strait {
namespace {

using testing::HasSubstr;

class Rejoin : public test::DistributedRuns {
 protected:
  const std::vector<std::string> flags_ = {"--set", "train.epochs=10",     "--set", "checkpoint.every_steps=3",
                                           "--set", "pipeline.rejoin=60s", "--set", "pipeline.timeout=20s"};

  /// The next checkpoint has begun.
  void wait_for_progress(test::RankProcesses& all) const {
    wait_for_checkpoint("run", checkpoints("run"), [&] { return all.have_all_ended(); });
  }

  void expect_undisturbed(test::RankProcesses& all) const {
    expect_all(all, 0);
    EXPECT_EQ(train("alone", {"--set", "train.epochs=10"}).status, 0);
    expect_equal_runs("alone", "run");
  }
};

TEST_F(Rejoin, AnyRankIsReplacedAndTheOthersKeepTheirProcesses) {
  auto all = start("run", flags_);
  for (const int victim : {2, 2, 0, 3, 0, 1}) {
    wait_for_progress(all);
    all.at(victim).send(SIGKILL);
    all.replace(victim, arguments("run", flags_));
  }
  expect_undisturbed(all);
}

// They would wait longer than the test does.
TEST_F(Rejoin, WrongInputOfOneEndsAll) {
  auto all = ranks();
  for (int rank = 0; rank < kRanks; ++rank)
    all.start(rank, arguments(rank == 1 ? "/dev/null/run" : "run", flags_));
  for (const auto& [rank, result] : all.wait(kLimit)) {
    EXPECT_EQ(result.status, rank == 1 ? 2 : 1) << "rank " << rank << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("/dev/null/run"));
  }
}

TEST_F(Rejoin, AFrozenRankIsReplacedToo) {
  auto all = start("run", {"--set", "train.epochs=10", "--set", "checkpoint.every_steps=3", "--set",
                           "pipeline.rejoin=60s", "--set", "pipeline.timeout=4s"});
  wait_for_progress(all);
  all.at(1).send(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  all.at(1).send(SIGKILL);
  all.replace(1, arguments("run", {"--set", "train.epochs=10", "--set", "checkpoint.every_steps=3", "--set",
                                   "pipeline.rejoin=60s", "--set", "pipeline.timeout=4s"}));
  expect_undisturbed(all);
}

TEST_F(Rejoin, AProcessThatWaitsForItsRankTakesItWhenItIsFree) {
  auto all = start("run", flags_);
  wait_for_progress(all);
  test::Process spare(STRAIT_PROGRAM, arguments("run", flags_), all.variables(2));
  wait_for_progress(all);
  all.at(2).send(SIGKILL);
  EXPECT_EQ(all.at(2).wait().status, 128 + SIGKILL);
  const auto taken = spare.wait(kLimit);
  EXPECT_EQ(taken.status, 0);
  EXPECT_THAT(taken.out, HasSubstr("another process has taken this rank"));
  for (const int rank : {0, 1, 3}) EXPECT_EQ(all.at(rank).wait(kLimit).status, 0);
  EXPECT_EQ(train("alone", {"--set", "train.epochs=10"}).status, 0);
  expect_equal_runs("alone", "run");
}

TEST_F(Rejoin, WhoComesWithOtherSettingsIsTurnedAwayAndTheOthersWaitOn) {
  auto all = start("run", flags_);
  for (const int victim : {2, 0}) {
    wait_for_progress(all);
    all.at(victim).send(SIGKILL);
    auto others = flags_;
    others.insert(others.end(), {"--set", "train.optimizer.lr=0.5"});
    all.replace(victim, arguments("run", others));
    const auto refused = all.at(victim).wait(kLimit);
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.err,
                testing::MatchesRegex("strait: rank .: rank . has train.optimizer.lr = .*, this one 0.5; "
                                      "all must be the same\n"));
    all.replace(victim, arguments("run", flags_));
  }
  expect_undisturbed(all);
}

TEST_F(Rejoin, WhoComesForSomethingElseEndsNobody) {
  auto all = start("run", flags_);
  for (const int victim : {1, 0}) {
    wait_for_progress(all);
    all.at(victim).send(SIGKILL);
    EXPECT_EQ(all.at(victim).wait().status, 128 + SIGKILL);
    test::Process other(STRAIT_PROGRAM, {"doctor", config_, "--ranks"}, all.variables(victim));
    EXPECT_NE(other.wait(kLimit).status, 0);
    all.replace(victim, arguments("run", flags_));
  }
  expect_undisturbed(all);
}

TEST_F(Rejoin, WhereNobodyComesTheOthersGiveUp) {
  auto all =
      start("run", {"--set", "train.epochs=10", "--set", "pipeline.rejoin=3s", "--set", "pipeline.timeout=4s"});
  wait_for_progress(all);
  all.at(2).send(SIGKILL);
  for (const int rank : {0, 1, 3}) {
    const auto result = all.at(rank).wait(kLimit);
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, HasSubstr("of 4 ranks these did not come within 4 s: 2"));
    EXPECT_THAT(result.out, HasSubstr("meeting the others again, for up to 3s"));
  }
}

TEST_F(Rejoin, WhoWaitsCanBeStopped) {
  auto all = start("run", flags_);
  wait_for_progress(all);
  all.at(2).send(SIGKILL);
  all.at(2).wait();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  for (const int rank : {0, 1, 3}) all.at(rank).send(SIGTERM);
  for (const int rank : {0, 1, 3}) {
    const auto result = all.at(rank).wait(kLimit);
    EXPECT_EQ(result.status, 130) << result.err;
  }
}

}  // namespace
}  // namespace strait
