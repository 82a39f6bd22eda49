// How `strait launch` watches over its processes; here shells stand for them.

#include "cli/launched_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "cli/output.h"
#include "cli/stop_signal.h"
#include "strait/base/error.h"

namespace strait {
namespace {

using cli::LaunchedRanks;
using testing::HasSubstr;

std::vector<std::string> shell(const std::string& script) { return {"/bin/bash", "-c", script}; }

/// Runs them and gives what they wrote, on standard output and error in turn.
struct Watched {
  explicit Watched(LaunchedRanks& ranks) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    status = ranks.wait();
    cli::flush_output();
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
  }
  int status;
  std::string out;
  std::string err;
};

constexpr cli::Patience kShort{.grace = 0.05, .stop = 0.05, .orderly_stop = 0.05};

TEST(LaunchedRanks, GivesEachItsVariablesAndPassesOnItsLines) {
  LaunchedRanks ranks(
      2, 0,
      shell("echo $RANK of $WORLD_SIZE at $MASTER_ADDR, ${#STRAIT_ATTEMPT}; echo -n \"strait: $RANK\" >&2"));
  const Watched watched(ranks);
  EXPECT_EQ(watched.status, 0);
  EXPECT_THAT(watched.out, HasSubstr("[0] 0 of 2 at 127.0.0.1, 32\n"));
  EXPECT_THAT(watched.out, HasSubstr("[1] 1 of 2 at 127.0.0.1, 32\n"));
  EXPECT_THAT(watched.err, HasSubstr("[1] strait: 1\n"));
  EXPECT_EQ(ranks.failure(), "");
}

TEST(LaunchedRanks, TheFirstFailureCounts) {
  LaunchedRanks ranks(
      2, 0, shell("if [ $RANK = 1 ]; then exit 7; fi; trap 'exit 8' TERM; while true; do sleep 0.01; done"),
      kShort);
  EXPECT_EQ(Watched(ranks).status, 7);
  EXPECT_EQ(ranks.failure(), "rank 1 failed with exit status 7");
}

TEST(LaunchedRanks, AKilledOneIsNamed) {
  LaunchedRanks ranks(2, 0, shell("if [ $RANK = 1 ]; then kill -9 $$; fi"), kShort);
  const Watched watched(ranks);
  EXPECT_EQ(watched.status, 137);
  EXPECT_EQ(watched.err, "[1] strait: was killed by signal 9 (Killed)\n");
  EXPECT_EQ(ranks.failure(), "rank 1 was killed by signal 9 (Killed)");
}

TEST(LaunchedRanks, OneThatASignalHoldsGoesWithTheFirstThatFails) {
  // Without the look at what holds it, it would get so much time that nobody waits for it.
  LaunchedRanks ranks(2, 0, shell("if [ $RANK = 0 ]; then kill -STOP $$; fi; sleep 0.2; exit 1"),
                      {.grace = 1e6, .stop = 1e6, .orderly_stop = 1e6});
  const Watched watched(ranks);
  EXPECT_EQ(watched.status, 1);
  EXPECT_EQ(watched.err, "[0] strait: was held by a signal and was killed\n");
}

TEST(LaunchedRanks, OneThatDoesNotEndIsKilled) {
  LaunchedRanks ranks(
      2, 0, shell("if [ $RANK = 1 ]; then exit 1; fi; trap '' TERM; while true; do sleep 0.01; done"), kShort);
  const Watched watched(ranks);
  EXPECT_EQ(watched.status, 1);
  EXPECT_EQ(watched.err, "[0] strait: did not end and was killed\n");
}

// In a process of its own, where the stop request stays.
TEST(LaunchedRanks, CtrlCEndsOneThatHangsAfterTheOthersAreDone) {
  const auto interrupted = [] {
    cli::catch_stop_signals();
    LaunchedRanks ranks(
        2, 0, shell("if [ $RANK = 1 ]; then exit 0; fi; trap '' TERM; while true; do sleep 0.01; done"),
        kShort);
    raise(SIGINT);
    _exit(ranks.wait());
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(137), "\\[0\\] strait: did not end and was killed");
}

TEST(LaunchedRanks, ATakenPortIsSaidToBe) {
  const StoreServer other("127.0.0.1", 0, 1, "");
  try {
    const LaunchedRanks ranks(2, other.port(), shell("true"));
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "launch: cannot listen at 127.0.0.1:" + std::to_string(other.port()) +
                                             ": another program listens there");
  }
}

}  // namespace
}  // namespace strait
