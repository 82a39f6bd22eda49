// What a person sees of a run: the bar, and the lines where there is no terminal.

#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "cli/output.h"
#include "cli/pace.h"
#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using cli::bar_text;
using cli::Pace;
using cli::progress_line;
using testing::HasSubstr;
using testing::Not;

Pace pace() {
  return {.epoch = 1,
          .epochs = 6,
          .phase = "train",
          .done = 400,
          .total = 1000,
          .rate = 310.2,
          .run_left = 843,
          .loss = 1.23456};
}

TEST(ProgressText, TheBarHasWhatFits) {
  EXPECT_EQ(
      bar_text("", pace(), 100),
      "epoch 2/6 train [#########               ]  40%  310 samples/s  0:02 left, 14:03 in all  loss 1.2346");
  EXPECT_EQ(bar_text("", pace(), 75),
            "epoch 2/6 train [####        ]  40%  310 samples/s  0:02 left, 14:03 in all");
  EXPECT_EQ(bar_text("", pace(), 60), "epoch 2/6 train [####       ]  40%  310 samples/s  0:02 left");
  EXPECT_EQ(bar_text("", pace(), 40), "epoch 2/6 train  40%  0:02 left");
  EXPECT_EQ(bar_text("", pace(), 22), "epoch 2/6 train  40%");
  EXPECT_EQ(bar_text("", pace(), 9), "epoch 2/6");
  EXPECT_EQ(bar_text("", pace(), 0), "");
  for (size_t width = 0; width < 120; ++width) EXPECT_LE(bar_text("off  ", pace(), width).size(), width);
}

TEST(ProgressText, WhatIsNotKnownIsLeftOut) {
  Pace unknown = pace();
  unknown.rate = unknown.run_left = unknown.loss = NAN;
  EXPECT_EQ(bar_text("", unknown, 100), "epoch 2/6 train [#########               ]  40%");
  EXPECT_EQ(progress_line("", unknown), "epoch 2 of 6: train 40%");
  unknown.epoch = -1;
  EXPECT_EQ(bar_text("", unknown, 40), "train [#########               ]  40%");
}

TEST(ProgressText, ALineSaysWhereTheRunIs) {
  EXPECT_EQ(progress_line("", pace()), "epoch 2 of 6: train 40%, 310 samples/s, 0:02 left, 14:03 in all");
}

/// What a run shows that is not on a terminal: neither is a test.
std::string shown(cli::Progress& progress, const std::function<void(cli::Progress&)>& run) {
  testing::internal::CaptureStdout();
  run(progress);
  cli::flush_output();
  return testing::internal::GetCapturedStdout();
}

TEST(Progress, WithoutATerminalALineComesNowAndThen) {
  cli::Progress every("", 2, false, 0);
  EXPECT_EQ(shown(every,
                  [](cli::Progress& progress) {
                    progress.on_batch(0, "train", 10, 40, NAN);
                    progress.on_batch(0, "train", 20, 40, NAN);
                    progress.on_batch(-1, "test", 20, 40, NAN);
                  }),
            "epoch 1 of 2: train 25%\nepoch 1 of 2: train 50%\n");
  cli::Progress seldom("", 2, false, 1e6);
  EXPECT_EQ(shown(seldom, [](cli::Progress& progress) { progress.on_batch(0, "train", 10, 40, NAN); }), "");
}

TEST(Progress, ALinkThatWasLostIsTold) {
  EpochMetrics epoch;
  epoch.links = {{.rank = 1, .peer = 0, .relayed = false, .outages = 1, .seconds = 2.25},
                 {.rank = 3, .peer = 2, .relayed = true, .outages = 3, .seconds = 40},
                 {.rank = 2, .peer = 0, .relayed = true, .outages = 0, .seconds = 0}};
  cli::Progress progress("", 2, false, 1e6);
  const std::string text = shown(progress, [&](cli::Progress& of) {
    of.on_epoch(epoch);
    of.on_epoch(epoch);
  });
  const auto count = [&](const std::string& line) {
    int found = 0;
    for (size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("the link of ranks 0 and 1 was lost once, for 2.2 s\n"), 2) << text;
  EXPECT_EQ(count("the link of ranks 2 and 3 was lost 3 times, for 40.0 s\n"), 2) << text;
  EXPECT_EQ(count("ranks 2 and 3 cannot reach each other and speak through rank 0\n"), 1) << text;
}

// Two batches that end at the same moment tell nothing of the rate.
TEST(Progress, NoRateComesFromAMoment) {
  cli::Progress every("", 1, false, 0);
  const std::string text = shown(every, [](cli::Progress& progress) {
    for (int64_t done = 1; done <= 1000; ++done) progress.on_batch(0, "train", done, 1000, NAN);
  });
  EXPECT_THAT(text, Not(HasSubstr("0000 samples/s")));
}

void pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(PassRate, APassIsTimedFromTheEndOfItsFirstBatch) {
  cli::PassRate pass;
  pause(60);
  EXPECT_TRUE(pass.reach("train", 10)) << "the first of all";
  EXPECT_TRUE(std::isnan(pass.rate()));
  pause(60);
  EXPECT_FALSE(pass.reach("train", 40));
  EXPECT_LE(pass.rate(), 30 / 0.06);
  EXPECT_GT(pass.rate(), 0);
  EXPECT_TRUE(pass.reach("train", 40)) << "as long as a batch: another pass";
  EXPECT_TRUE(std::isnan(pass.rate()));
}

TEST(PassRate, BehindATestTrainingIsTimedAnew) {
  cli::PassRate pass;
  pass.reach("train", 1000);
  EXPECT_TRUE(pass.reach("test", 10));
  EXPECT_TRUE(pass.reach("train", 1010)) << "more samples than of the test, yet not in its time";
  pause(60);
  EXPECT_FALSE(pass.reach("train", 1020));
  EXPECT_LE(pass.rate(), 10 / 0.06);
}

TEST(EpochTimes, AnEpochIsAllOfItsPasses) {
  cli::EpochTimes times;
  pause(60);
  times.begin_pass(0);
  pause(30);
  EXPECT_TRUE(std::isnan(times.run_left(1)));
  times.begin_pass(0);  // the evaluation
  pause(30);
  times.end_epoch();
  times.begin_pass(1);
  const double left = times.run_left(2);
  EXPECT_GE(left, 2 * 0.06);
  pause(10);
  EXPECT_LE(times.run_left(2), left - 0.01);
}

using Terminal = test::TinyRuns;

/// What a program writes on a terminal with so many columns.
std::string on_terminal(unsigned short columns, const std::vector<std::string>& words) {
  int terminal = -1;
  winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  std::vector<char*> arguments;
  for (const auto& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  std::string text;
  std::array<char, 4096> space;
  for (ssize_t got = 0; (got = read(terminal, space.data(), space.size())) > 0;) {
    text.append(space.data(), static_cast<size_t>(got));
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << text;
  close(terminal);
  return text;
}

TEST_F(Terminal, TheBarStaysOnOneLine) {
  std::vector<std::string> words = {STRAIT_PROGRAM};
  const auto train = arguments("run", {"--set", "train.epochs=1"});
  words.insert(words.end(), train.begin(), train.end());
  const std::string text = on_terminal(40, words);
  const std::string begin = "\r\x1b[K";
  size_t bars = 0;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const size_t start = at + begin.size();
    const std::string bar = text.substr(start, text.find_first_of("\r\n", start) - start);
    if (!bar.starts_with("epoch 1/1 t") || bar.find("train loss") != std::string::npos) continue;
    ++bars;
    EXPECT_LT(bar.size(), 40U) << bar;
    EXPECT_THAT(bar, HasSubstr("%"));
  }
  EXPECT_GE(bars, 3U);
}

TEST_F(Terminal, OneThatCannotEraseALineGetsWhatAFileGets) {
  std::vector<std::string> words = {"/usr/bin/env", "TERM=dumb", STRAIT_PROGRAM};
  const auto train = arguments("run", {"--set", "train.epochs=1"});
  words.insert(words.end(), train.begin(), train.end());
  const std::string text = on_terminal(40, words);
  EXPECT_THAT(text, HasSubstr("epoch 1/1  train loss "));
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

}  // namespace
}  // namespace strait
