// `--link`: processes that send over emulated links.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/cli/distributed_runs.h"

namespace strait {
namespace {

using testing::HasSubstr;

class EmulatedLinkRuns : public test::DistributedRuns {};

TEST_F(EmulatedLinkRuns, OfFourProcessesAndOfOneHaveTheBitsOfOneWithout) {
  train_with_ranks("four", {"--link", "100Mbps,2ms"});
  expect_equal_runs(whole(), "four");
  const auto one = train("one", {"--link", "100Mbps,2ms"});
  EXPECT_EQ(one.status, 0) << one.err;
  expect_equal_runs(whole(), "one");
}

TEST_F(EmulatedLinkRuns, EachRankMayHaveItsOwnAndAResumedRunAnother) {
  const std::vector<std::string> links[] = {
      {"--link", "20Mbps"}, {}, {"--link", "unlimited,3ms"}, {"--link", ""}};
  test::RankProcesses all = ranks();
  for (int rank = 0; rank < kRanks; ++rank) {
    auto flags = links[rank];
    flags.insert(flags.end(), {"--set", "train.epochs=1"});
    all.start(rank, arguments("run", flags));
  }
  expect_all(all, 0);
  const auto resumed = test::run_process(STRAIT_PROGRAM, launch({"--link", "1Gbps,1ms"}, "run", {"--resume"}));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("[0] resuming from"));
  EXPECT_THAT(resumed.out, HasSubstr("link         1 Gbps with 1 ms latency, emulated between processes\n"));
  expect_equal_runs(whole(), "run");
}

TEST_F(EmulatedLinkRuns, OfReplicasHaveTheBitsOfThoseWithout) {
  const std::vector<std::string> replicas = {"--set", "pipeline.replicas=2", "--set", "model.cuts=[\"layer2\"]",
                                             "--set", "train.epochs=1"};
  train_with_ranks("without", replicas);
  auto linked = replicas;
  linked.insert(linked.end(), {"--link", "100Mbps,1ms"});
  train_with_ranks("with", linked);
  expect_equal_runs("without", "with");
}

// No message arrives within the test. Whoever waited for those under way would still be there after the limit.
TEST_F(EmulatedLinkRuns, EndWithARankThatIsLost) {
  auto all = start("run", {"--link", "unlimited,1000s", "--set", "pipeline.timeout=6s"});
  while (!std::filesystem::exists(dir_ / "run/status.json") && !all.have_all_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  all.at(2).send(SIGKILL);
  const auto results = all.wait(kLimit);
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(results.at(rank).status, 1) << "rank " << rank << ": " << results.at(rank).err;
    EXPECT_THAT(results.at(rank).err, HasSubstr("rank 2"));
  }
}

TEST_F(EmulatedLinkRuns, WithAWrongLinkAreRefused) {
  for (const char* wrong : {"fast", "50ms", "999bps"}) {
    for (const auto& refused : {train("run", {"--link", wrong}),
                                test::run_process(STRAIT_PROGRAM, launch({"--link", wrong}, "run"))}) {
      EXPECT_EQ(refused.status, 2) << wrong;
      EXPECT_THAT(refused.err, testing::StartsWith("strait: --link: expected a rate ")) << wrong;
      EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
    }
  }
  const auto doctor = test::run_process(
      STRAIT_PROGRAM, {"launch", "-n", "4", "--link", "1Mbps", "--", "doctor", config_, "--ranks"});
  EXPECT_EQ(doctor.status, 2);
  EXPECT_EQ(doctor.err, "strait: launch: --link is for train, found doctor\n");
}

}  // namespace
}  // namespace strait
