// `strait launch` with real runs: restarts, strangers, two at once, what is left behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "strait/transport/socket.h"
#include "tests/cli/distributed_runs.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;

/// The processes that a process has started.
std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream in("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; in >> child;) children.push_back(child);
  return children;
}

/// Whether it computes no more; nobody may have asked for its status yet.
bool is_dead(pid_t process) {
  std::ifstream in("/proc/" + std::to_string(process) + "/stat");
  std::string number;
  std::string name;
  char state = 'X';
  in >> number >> name >> state;
  return state == 'X' || state == 'Z';
}

class Launch : public test::DistributedRuns {
 protected:
  static std::string rank_of(pid_t process) {
    const std::string variables = test::read_file("/proc/" + std::to_string(process) + "/environ");
    const size_t at = variables.find(std::string("\0RANK=", 6));
    return at == std::string::npos ? "" : variables.substr(at + 6, 1);
  }

  static pid_t rank_process(pid_t launcher, const std::string& rank) {
    for (const pid_t child : children_of(launcher)) {
      if (rank_of(child) == rank) return child;
    }
    return 0;
  }
};

TEST_F(Launch, StartsAgainAfterAKillAndGivesTheSameBits) {
  test::Process launcher(STRAIT_PROGRAM,
                         launch({"--restarts", "2"}, "run", {"--set", "checkpoint.every_steps=3"}));
  for (const char* victim : {"2", "0"}) {
    const auto before = checkpoints("run");
    wait_for_checkpoint("run", before, [&] { return launcher.has_ended(); });
    const pid_t rank = rank_process(launcher.id(), victim);
    ASSERT_GT(rank, 0);
    kill(rank, SIGKILL);
    while (!launcher.has_ended() && std::ranges::count(children_of(launcher.id()), rank) != 0) {
      std::this_thread::sleep_for(1ms);
    }
  }
  const auto result = launcher.wait(kLimit);
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* line : {"rank 2 was killed by signal 9 (Killed); restarting all ranks, restart 1 of 2\n",
                           "rank 0 was killed by signal 9 (Killed); restarting all ranks, restart 2 of 2\n"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
  EXPECT_THAT(result.out, HasSubstr("[0] resuming from"));
  expect_equal_runs(whole(), "run");
}

TEST_F(Launch, ReplacesALostRankAndGivesTheSameBits) {
  test::Process launcher(STRAIT_PROGRAM, launch({"--replace", "3"}, "run",
                                                {"--overwrite", "--set", "checkpoint.every_steps=3", "--set",
                                                 "train.epochs=10", "--set", "pipeline.timeout=20s"}));
  const auto others = [&](const std::string& victim) {
    std::vector<pid_t> found;
    for (const pid_t child : children_of(launcher.id())) {
      const std::string rank = rank_of(child);  // empty until it has become a rank's program
      if (!rank.empty() && rank != victim) found.push_back(child);
    }
    return found;
  };
  for (const char* victim : {"2", "0", "2"}) {
    wait_for_checkpoint("run", checkpoints("run"), [&] { return launcher.has_ended(); });
    const pid_t rank = rank_process(launcher.id(), victim);
    ASSERT_GT(rank, 0);
    const auto before = others(victim);
    kill(rank, SIGKILL);
    while (!launcher.has_ended() && std::ranges::count(children_of(launcher.id()), rank) != 0) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(others(victim), before) << "they keep their processes";
  }
  const auto result = launcher.wait(kLimit);
  EXPECT_EQ(result.status, 0) << result.err;
  for (const char* line : {"rank 2 was killed by signal 9 (Killed); starting it again, replacement 1 of 3\n",
                           "rank 0 was killed by signal 9 (Killed); starting it again, replacement 2 of 3\n",
                           "meeting the others again, for up to 60s\n"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
  ASSERT_EQ(train("alone", {"--set", "train.epochs=10"}).status, 0);
  expect_equal_runs("alone", "run");
}

TEST_F(Launch, ARestartBeforeTheRunHasBegunStillReplacesTheOldOne) {
  ASSERT_EQ(train("run").status, 0);
  test::Process launcher(STRAIT_PROGRAM,
                         launch({"--restarts", "1"}, "run", {"--overwrite", "--set", "seed=8"}));
  pid_t rank = 0;
  while (rank == 0 && !launcher.has_ended()) rank = rank_process(launcher.id(), "1");
  ASSERT_GT(rank, 0);
  kill(rank, SIGKILL);
  const auto result = launcher.wait(kLimit);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("restarting all ranks, restart 1 of 1\n"));
  ASSERT_EQ(train("alone", {"--set", "seed=8"}).status, 0);
  expect_equal_runs("alone", "run");
}

TEST_F(Launch, WhatIsWrongIsNotTriedAgain) {
  const auto wrong =
      test::run_process(STRAIT_PROGRAM, launch({"--restarts", "3"}, "run", {"--set", "train.epochs=x"}));
  EXPECT_EQ(wrong.status, 2);
  EXPECT_EQ(wrong.out, "");
  const auto diverged = test::run_process(
      STRAIT_PROGRAM, launch({"--restarts", "3"}, "run", {"--set", "train.optimizer.lr=1e30"}));
  EXPECT_EQ(diverged.status, 3);
  EXPECT_THAT(diverged.out, testing::Not(HasSubstr("restart")));
}

TEST_F(Launch, AFrozenRankIsKilledAndTheRunGoesOn) {
  test::Process launcher(STRAIT_PROGRAM,
                         launch({"--restarts", "1"}, "run",
                                {"--set", "checkpoint.every_steps=3", "--set", "pipeline.timeout=3s"}));
  wait_for_checkpoint("run", {}, [&] { return launcher.has_ended(); });
  const pid_t rank = rank_process(launcher.id(), "1");
  ASSERT_GT(rank, 0);
  kill(rank, SIGSTOP);
  const auto result = launcher.wait(kLimit);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("[1] strait: rank 1 was held by a signal and was killed\n"));
  EXPECT_THAT(result.out, HasSubstr("failed with exit status 1; restarting all ranks"));
  expect_equal_runs(whole(), "run");
}

TEST_F(Launch, TwoOnOnePortNeverMix) {
  const std::vector<std::string> port = {"--port", std::to_string(free_port())};
  test::Process first(STRAIT_PROGRAM, launch(port, "first"));
  test::Process second(STRAIT_PROGRAM, launch(port, "second", {"--set", "seed=8"}));
  for (const auto& [process, out, seed] :
       {std::tuple(&first, "first", "7"), std::tuple(&second, "second", "8")}) {
    const auto result = process->wait(kLimit);
    EXPECT_EQ(result.status, 0) << result.err;
    ASSERT_EQ(train(std::string("alone-") + seed, {"--set", std::string("seed=") + seed}).status, 0);
    expect_equal_runs(std::string("alone-") + seed, out);
  }
}

TEST_F(Launch, ARankOfAnotherAttemptIsTurnedAway) {
  const test::Variable secret("STRAIT_SECRET", "a secret of this test");
  const uint16_t port = free_port();
  test::RankProcesses all(STRAIT_PROGRAM, kRanks, port);
  all.start(0, arguments("run"), {"STRAIT_ATTEMPT=another"});
  test::Process mine(STRAIT_PROGRAM, arguments("run"), [&] {
    auto variables = all.variables(1);
    variables.emplace_back("STRAIT_ATTEMPT=mine");
    return variables;
  }());
  EXPECT_EQ(mine.wait(kLimit).err,
            "strait: rank 1: another training meets at 127.0.0.1:" + std::to_string(port) +
                " (MASTER_ADDR:MASTER_PORT); use another port, or wait for its end\n");
  all.at(0).send(SIGKILL);
  all.wait(kLimit);
}

TEST_F(Launch, StrangersWhoStayHarmNobody) {
  const test::Variable secret("STRAIT_SECRET", "a secret of this test");
  const uint16_t port = free_port();
  test::Process launcher(STRAIT_PROGRAM, launch({"--port", std::to_string(port)}, "run"));
  std::vector<Socket> strangers;
  while (!launcher.has_ended()) {
    auto stranger = connect_to("127.0.0.1", port, std::chrono::steady_clock::now() + 1s);
    if (stranger && strangers.size() < 500) {
      send_all(*stranger, std::string(strangers.size() % 3, '\0'), std::chrono::steady_clock::now() + 1s);
      strangers.push_back(std::move(*stranger));
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }
  EXPECT_GT(strangers.size(), 0U);
  const auto result = launcher.wait(kLimit);
  EXPECT_EQ(result.status, 0) << result.err;
  expect_equal_runs(whole(), "run");
}

TEST_F(Launch, TheFirstRankSaysWhomItWaitsFor) {
  auto all = ranks();
  for (const int rank : {0, 2}) all.start(rank, arguments("run", {"--set", "pipeline.timeout=5s"}));
  EXPECT_THAT(expect_all(all, 1).at(0).out, MatchesRegex("waiting for ranks 1, (2, )?3\n[^.]*"));
}

TEST_F(Launch, AKilledLauncherLeavesNothingBehind) {
  test::Process launcher(STRAIT_PROGRAM, launch_arguments("run"), {"TMPDIR=" + dir_.path().string()});
  wait_for_checkpoint("run", {}, [&] { return launcher.has_ended(); });
  const auto children = children_of(launcher.id());
  EXPECT_EQ(children.size(), static_cast<size_t>(kRanks));
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(kLimit).status, 128 + SIGKILL);
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (!std::ranges::all_of(children, is_dead) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(std::ranges::all_of(children, is_dead));
  EXPECT_THAT(test::names_in(dir_.path()), testing::ElementsAre("run", "tiny.toml"));
}

TEST_F(Launch, RefusesWhatIsNoTraining) {
  struct Case {
    std::vector<std::string> words;
    std::string error;
  };
  const std::vector<Case> cases = {
      {{"-n", "4", "train", config_, "--out", dir_ / "run"},
       "strait: strait launch has no flag --out[^\n]*; what it runs stands behind --; see strait launch "
       "--help\n"},
      {{"-n", "4", "--", "eval", config_},
       "strait: launch: expected train or doctor behind --, found \"eval\": the other verbs run in one "
       "process, and a "
       "program of one's own is started with RANK and WORLD_SIZE, as by torchrun\n"},
      {{"-n", "4", "--restarts", "1", "--", "doctor", config_, "--ranks"},
       "strait: launch: --restarts is for train, found doctor\n"},
      {{"-n", "4", "--replace", "1", "--", "doctor", config_, "--ranks"},
       "strait: launch: --replace is for train, found doctor\n"},
      {{"-n", "4"}, "strait: strait launch needs -- train CONFIG.toml, [^\n]*\n"},
      {{"-n", "0", "--", "train", config_}, "strait: --processes: Value 0 not in range 1 to 1024\n"},
      {{"-n", "3", "--", "train", config_},
       "\\[[012]\\] strait: WORLD_SIZE \\(launch -n\\): expected 4 processes, one for each of the 4 stages "
       "that model.cuts "
       "makes, or 1; "
       "found 3\n"}};
  for (const auto& [words, error] : cases) {
    std::vector<std::string> all = {"launch"};
    all.insert(all.end(), words.begin(), words.end());
    const auto result = test::run_process(STRAIT_PROGRAM, all);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, testing::MatchesRegex(error));
    EXPECT_FALSE(fs::exists(dir_ / "run"));
  }
}

}  // namespace
}  // namespace strait
