// How a launcher watches over its processes; here shells stand for them.

#include "strait/transport/launched_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <sstream>

#include "strait/base/error.h"
#include "strait/base/stop_signal.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> shell(const std::string& script) { return {"/bin/bash", "-c", script}; }

/// Runs the script in two processes and keeps what is passed on of them.
struct Watched {
  explicit Watched(const std::string& script, Patience patience = {}, IsReplaced is_replaced = {}) {
    LaunchedRanks ranks(
        2, 0, shell(script),
        [this](int rank, const std::string& line) { lines.push_back(fmt::format("[{}] {}", rank, line)); },
        patience, std::move(is_replaced));
    status = ranks.wait();
    failure = ranks.failure();
  }
  int status;
  std::string failure;
  std::vector<std::string> lines;
};

constexpr Patience kShort{.grace = 0.05, .stop = 0.05, .orderly_stop = 0.05};

TEST(LaunchedRanks, GivesEachItsVariablesAndPassesOnItsLines) {
  const Watched watched(
      "echo $RANK of $WORLD_SIZE at $MASTER_ADDR, ${#STRAIT_ATTEMPT}; echo -n \"strait: $RANK\" >&2");
  EXPECT_EQ(watched.status, 0);
  EXPECT_THAT(watched.lines, UnorderedElementsAre("[0] 0 of 2 at 127.0.0.1, 32", "[0] strait: 0",
                                                  "[1] 1 of 2 at 127.0.0.1, 32", "[1] strait: 1"));
  EXPECT_EQ(watched.failure, "");
}

TEST(LaunchedRanks, TheFirstFailureCounts) {
  const Watched watched(
      "if [ $RANK = 1 ]; then exit 7; fi; trap 'exit 8' TERM; while true; do sleep 0.01; done", kShort);
  EXPECT_EQ(watched.status, 7);
  EXPECT_EQ(watched.failure, "rank 1 failed with exit status 7");
}

TEST(LaunchedRanks, AKilledOneIsNamed) {
  const Watched watched("if [ $RANK = 1 ]; then kill -9 $$; fi", kShort);
  EXPECT_EQ(watched.status, 137);
  EXPECT_THAT(watched.lines, ElementsAre("[1] strait: rank 1 was killed by signal 9 (Killed)"));
  EXPECT_EQ(watched.failure, "rank 1 was killed by signal 9 (Killed)");
}

TEST(LaunchedRanks, OneThatFailsIsReplacedWhileTheOtherGoesOn) {
  const test::TempDir dir;
  std::vector<std::string> asked;
  const auto is_replaced = [&](int rank, const Child::End& end) {
    asked.push_back(fmt::format("rank {} {}", rank, text_of(end)));
    return status_of(end) != 0;
  };
  // Rank 1 fails twice; rank 0 waits for its third process.
  const Watched watched(
      "cd " + dir.path().string() +
          "; if [ $RANK = 0 ]; then until [ -e done ]; do sleep 0.01; done; exit 0; fi; echo $STRAIT_ATTEMPT "
          ">>attempts; case $(wc -l <attempts) in 1) kill -9 $$;; 2) exit 1;; esac; touch done",
      kShort, is_replaced);
  EXPECT_EQ(watched.status, 0);
  EXPECT_EQ(watched.failure, "");
  EXPECT_THAT(watched.lines, ElementsAre("[1] strait: rank 1 was killed by signal 9 (Killed)"));
  EXPECT_GE(asked.size(), 3u);
  EXPECT_EQ(asked[0], "rank 1 was killed by signal 9 (Killed)");
  EXPECT_EQ(asked[1], "rank 1 failed with exit status 1");
  std::istringstream attempts(test::read_file(dir / "attempts"));
  std::string first, second;
  attempts >> first >> second;
  EXPECT_EQ(first, second) << "a process that takes a rank belongs to the same attempt";
}

TEST(LaunchedRanks, OneThatASignalHoldsForTheGraceIsReplaced) {
  const test::TempDir dir;
  const Watched watched("cd " + dir.path().string() +
                            "; if [ $RANK = 0 ]; then until [ -e done ]; do sleep 0.01; done; exit 0; fi; "
                            "if [ ! -e held ]; then touch held; kill -STOP $$; fi; touch done",
                        kShort, [](int, const Child::End& end) { return status_of(end) != 0; });
  EXPECT_EQ(watched.status, 0);
  EXPECT_THAT(watched.lines, ElementsAre("[1] strait: rank 1 was held by a signal and was killed"));
}

TEST(LaunchedRanks, OneThatASignalHoldsForAMomentGoesOn) {
  const Watched watched("if [ $RANK = 0 ]; then (sleep 0.3; kill -CONT $$) & kill -STOP $$; fi; echo $RANK", {},
                        [](int, const Child::End& end) { return status_of(end) != 0; });
  EXPECT_EQ(watched.status, 0);
  EXPECT_THAT(watched.lines, UnorderedElementsAre("[0] 0", "[1] 1"));
}

TEST(LaunchedRanks, NoneIsReplacedOnceAnotherHasEnded) {
  const Watched watched("if [ $RANK = 1 ]; then sleep 0.3; exit 1; fi", {},
                        [](int, const Child::End& end) { return status_of(end) != 0; });
  EXPECT_EQ(watched.status, 1);
  EXPECT_EQ(watched.failure, "rank 1 failed with exit status 1");
}

TEST(LaunchedRanks, OneThatASignalHoldsGoesWithTheFirstThatFails) {
  // Without the look at what holds it, it would get so much time that nobody waits for it.
  const Watched watched("if [ $RANK = 0 ]; then kill -STOP $$; fi; sleep 0.2; exit 1",
                        {.grace = 1e6, .stop = 1e6, .orderly_stop = 1e6});
  EXPECT_EQ(watched.status, 1);
  EXPECT_THAT(watched.lines, ElementsAre("[0] strait: rank 0 was held by a signal and was killed"));
}

TEST(LaunchedRanks, OneThatDoesNotEndIsKilled) {
  const Watched watched("if [ $RANK = 1 ]; then exit 1; fi; trap '' TERM; while true; do sleep 0.01; done",
                        kShort);
  EXPECT_EQ(watched.status, 1);
  EXPECT_THAT(watched.lines, ElementsAre("[0] strait: rank 0 did not end and was killed"));
}

TEST(LaunchedRanks, ARequestOfTheCallersOwnStopsThem) {
  std::vector<std::string> lines;
  LaunchedRanks ranks(2, 0, shell("trap 'echo stopped; exit 9' TERM; echo up; while true; do sleep 0.01; done"),
                      [&](int, const std::string& line) { lines.push_back(line); });
  EXPECT_EQ(ranks.wait([&] { return std::ranges::count(lines, "up") == 2; }), 9);
  EXPECT_THAT(lines, ElementsAre("up", "up", "stopped", "stopped"));
}

// In a process of its own, where the stop request stays.
TEST(LaunchedRanks, CtrlCEndsOneThatHangsAfterTheOthersAreDone) {
  const auto interrupted = [] {
    catch_stop_signals();
    LaunchedRanks ranks(
        2, 0, shell("if [ $RANK = 1 ]; then exit 0; fi; trap '' TERM; while true; do sleep 0.01; done"),
        [](int rank, const std::string& line) { std::cerr << rank << ' ' << line << '\n'; }, kShort);
    raise(SIGINT);
    _exit(ranks.wait());
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(137), "0 strait: rank 0 did not end and was killed");
}

}  // namespace
}  // namespace strait
