// Runs that are killed, stopped or run out of disk, and resume: real processes, real files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <thread>

#include "strait/base/random.h"
#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;

using ResumedProcess = test::TinyRuns;

bool is_partial(const std::string& name) { return name.ends_with(".partial"); }

/// Looks at the checkpoints again and again until `enough` says so or the process has ended.
void watch(test::Process& process, const fs::path& run,
           const std::function<bool(const std::vector<std::string>& names)>& enough) {
  while (!process.has_ended()) {
    std::vector<std::string> names;
    std::error_code ignored;  // the folder changes meanwhile
    for (fs::directory_iterator item(run / "checkpoint", ignored), end; item != end; item.increment(ignored)) {
      names.push_back(item->path().filename().string());
    }
    if (enough(names)) return;
    std::this_thread::sleep_for(100us);
  }
}

// With a checkpoint after every step. A third of the kills comes at any time after the start, a third at any
// time after the run has got on, and a third then waits for a checkpoint that is being written or removed.
TEST_F(ResumedProcess, KilledAnywhereItComesToTheSameBits) {
  constexpr int kKills = 24;
  CounterRandom random(2024);
  int run = 0;
  int in_checkpoint = 0;
  const auto name = [&] { return "killed" + std::to_string(run); };
  const std::vector<std::string> flags = {"--resume", "--set", "checkpoint.every_steps=1"};
  for (int kills = 0; kills < kKills;) {
    const int kind = kills % 3;
    const auto delay = std::chrono::microseconds(random.below(kind == 0 ? 700'000 : 100'000));
    const auto before = checkpoints(name());
    test::Process process(STRAIT_PROGRAM, arguments(name(), flags));
    if (kind > 0) {
      watch(process, dir_ / name(), [&](const auto& names) {
        return std::ranges::any_of(names, [&](const auto& checkpoint) {
          return !is_partial(checkpoint) && std::ranges::find(before, checkpoint) == before.end();
        });
      });
    }
    std::this_thread::sleep_for(delay);
    if (kind == 2) {
      watch(process, dir_ / name(), [](const auto& names) { return std::ranges::any_of(names, is_partial); });
    }
    process.send(SIGKILL);
    const auto result = process.wait();
    const auto left = checkpoints(name());
    std::cout << "kill " << kills << " of " << name() << ", kind " << kind << ", delay " << delay.count() / 1000
              << " ms, left " << testing::PrintToString(left) << "\n";
    if (result.status == 0) {  // it was done before: compare, and kill another one
      expect_equal_runs(whole(), name());
      ++run;
      continue;
    }
    ASSERT_EQ(result.status, 128 + SIGKILL) << result.err;
    in_checkpoint += static_cast<int>(std::ranges::any_of(left, is_partial));
    ++kills;
  }
  const auto last = train(name(), flags);
  ASSERT_EQ(last.status, 0) << last.err;
  expect_equal_runs(whole(), name());
  EXPECT_EQ(checkpoints(name()), std::vector<std::string>{"epoch-0003-batch-00000"});
  EXPECT_GE(in_checkpoint, 1);
}

TEST_F(ResumedProcess, StoppedBySignalsItGoesOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    test::Process process(STRAIT_PROGRAM,
                          arguments("stopped", {"--resume", "--set", "checkpoint.every_steps=1"}));
    const auto before = checkpoints("stopped");
    while (!process.has_ended() && checkpoints("stopped") == before) std::this_thread::sleep_for(1ms);
    process.send(signal);
    const auto result = process.wait();
    ASSERT_EQ(result.status, 130) << result.err;
    EXPECT_THAT(result.out, HasSubstr("--resume resumes from it"));
    EXPECT_EQ(status("stopped").at("status"), "stopped");
    EXPECT_EQ(checkpoints("stopped").size(), 1U);
  }
  const auto last = train("stopped", {"--resume"});
  EXPECT_THAT(last.out, HasSubstr("resuming from"));
  expect_equal_runs(whole(), "stopped");
  EXPECT_THAT(train("stopped", {"--resume"}).out, HasSubstr("finished all its epochs already"));
}

TEST_F(ResumedProcess, ASecondSignalOfAnotherKindEndsItAtOnce) {
  test::Process process(STRAIT_PROGRAM, arguments("run", {"--set", "train.epochs=100000"}));
  while (!process.has_ended() && checkpoints("run").empty()) std::this_thread::sleep_for(1ms);
  process.send(SIGSTOP);  // so that both come before it can act on the first
  process.send(SIGINT);
  process.send(SIGTERM);
  process.send(SIGCONT);
  EXPECT_THAT(process.wait().status, testing::AnyOf(128 + SIGINT, 128 + SIGTERM));
  EXPECT_EQ(status("run").at("status"), "running") << "it had no time to say that it stops";
}

// A limit on the size of files stands for the full disk: it lets status.json through and stops the file of the
// checkpoint that is above it.
TEST_F(ResumedProcess, AFullDiskLeavesTheCheckpointBefore) {
  ASSERT_EQ(train("run", {"--set", "train.epochs=1"}).status, 0);
  const auto checkpoint = dir_ / "run/checkpoint/epoch-0001-batch-00000";
  const std::string weights = test::read_file(checkpoint / "model.safetensors");
  const auto largest = fs::file_size(checkpoint / "links.safetensors");
  ASSERT_GT(largest, weights.size() + 4096);
  for (const auto& [limit, file] :
       {std::pair{weights.size() / 2, "model.safetensors"}, {largest - 2048, "links.safetensors"}}) {
    const std::string script = "ulimit -f " + std::to_string(limit / 1024) +
                               "; exec " STRAIT_PROGRAM " train " + config_ + " --resume --out " +
                               (dir_ / "run").string();
    const auto result = test::run_process("/bin/bash", {"-c", script});
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, testing::MatchesRegex("strait: [^\n]*" + std::string(file) +
                                                  ": cannot be written: File too large\n"));
    EXPECT_EQ(status("run").at("status"), "failed");
    EXPECT_EQ(checkpoints("run"), std::vector<std::string>{"epoch-0001-batch-00000"});
    EXPECT_EQ(test::read_file(checkpoint / "model.safetensors"), weights);
  }
  ASSERT_EQ(train("run", {"--resume"}).status, 0);
  expect_equal_runs(whole(), "run");
}

// Nohup has SIGHUP ignored.
TEST_F(ResumedProcess, AHangUpThatIsIgnoredStopsNothing) {
  const std::string script =
      "trap '' HUP; exec " STRAIT_PROGRAM " train " + config_ + " --out " + (dir_ / "run").string();
  test::Process process("/bin/bash", {"-c", script});
  while (!process.has_ended() && !fs::exists(dir_ / "run/status.json")) std::this_thread::sleep_for(1ms);
  process.send(SIGHUP);
  const auto result = process.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(status("run").at("status"), "done");
}

// What cannot be written when the run begins is a wrong path, unless a disk is full or fails (files_test.cpp);
// what cannot be later a failure.
TEST_F(ResumedProcess, AFolderThatCannotBeWrittenIsAWrongOne) {
  test::write_file(dir_ / "file", "");
  const auto below_file = train("file/run");
  EXPECT_EQ(below_file.status, 2);
  EXPECT_EQ(below_file.err,
            "strait: " + (dir_ / "file/run").string() + ": cannot make the folder: Not a directory\n");
  const std::string script = "(ulimit -f 0; exec " STRAIT_PROGRAM " train " + config_ + " --out " +
                             (dir_ / "run").string() + ") 2>&1 | cat";
  const auto full = test::run_process("/bin/bash", {"-o", "pipefail", "-c", script});
  EXPECT_EQ(full.status, 2);
  EXPECT_THAT(full.out,
              testing::MatchesRegex("strait: [^\n]*run/config.toml: cannot be written: File too large\n"));
}

TEST_F(ResumedProcess, TwoDoNotTrainInOneFolder) {
  test::Process first(STRAIT_PROGRAM, arguments("run", {"--set", "train.epochs=100000"}));
  while (!first.has_ended() && checkpoints("run").empty()) std::this_thread::sleep_for(1ms);
  const std::string before = test::read_file(dir_ / "run/config.toml");
  for (const char* flag : {"--overwrite", "--resume", "--set=seed=8"}) {
    const auto second = train("run", {flag});
    EXPECT_EQ(second.status, 2);
    EXPECT_EQ(second.err, "strait: " + (dir_ / "run").string() + ": another process trains here\n");
  }
  EXPECT_EQ(test::read_file(dir_ / "run/config.toml"), before);
  EXPECT_FALSE(first.has_ended());
  first.send(SIGKILL);
  EXPECT_EQ(first.wait().status, 128 + SIGKILL);
  EXPECT_TRUE(fs::exists(dir_ / "run/.lock")) << "left behind, and harmless";
  EXPECT_EQ(train("run", {"--overwrite"}).status, 0);
  EXPECT_FALSE(fs::exists(dir_ / "run/.lock"));
  expect_equal_runs(whole(), "run");
}

TEST_F(ResumedProcess, WrongFlagsAndConfigurationsAreRefused) {
  ASSERT_EQ(train("run", {"--set", "train.epochs=1"}).status, 0);
  const auto both = train("run", {"--resume", "--overwrite"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("excludes"));
  const auto other = train("run", {"--resume", "--set", "data.batch_size=30"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err,
              testing::MatchesRegex("strait: [^\n]*position.json: the run has data.batch_size = 20, the "
                                    "configuration 30; --resume cannot change it\n"));
  EXPECT_THAT(train("run").err, HasSubstr("holds a run already; resume it with --resume"));
}

}  // namespace
}  // namespace strait
