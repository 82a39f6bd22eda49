// How a program other than strait runs a sweep; a shell script stands for the one that trains.

#include "strait/experiment/sweep_runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "strait/base/error.h"
#include "strait/run/metrics_json.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

/// Notes what it hears, and asks to stop when so many runs have started.
class Listener : public SweepObserver {
 public:
  explicit Listener(size_t most_starts = 100) : most_starts_(most_starts) {}
  void on_start(size_t run) override { started.push_back(run); }
  void on_end(size_t run, const RunState& state) override {
    ended.push_back(fmt::format("{} {} {}", run, to_string(*state.status), state.error));
  }
  bool should_stop() override { return started.size() >= most_starts_; }

  std::vector<size_t> started;
  std::vector<std::string> ended;

 private:
  size_t most_starts_;
};

class RunnerOfASweep : public testing::Test {
 protected:
  RunnerOfASweep() {
    for (const std::string name : {"a", "b", "c"}) {
      Config config;
      config.name = name;
      sweep_.runs.push_back({name, config, std::nullopt});
    }
  }

  /// Runs all of the sweep with the script as the program; gives whether it came to its end.
  bool train(const std::string& script, SweepObserver& observer, int jobs = 1,
             bool replaces_unreadable = false) {
    test::write_file(dir_ / "train.sh", script);
    SweepRecord record(sweep_, dir_ / "sweep");
    const std::vector<size_t> all = {0, 1, 2};
    return SweepRunner(sweep_, dir_ / "sweep", record, observer,
                       {.program = {"/bin/bash", dir_ / "train.sh"},
                        .jobs = jobs,
                        .flags = {"--verbose"},
                        .replaces_unreadable = replaces_unreadable})
        .train(all);
  }

  void write_in(const std::string& run, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(dir_ / ("sweep/" + run));
    test::write_file(dir_ / ("sweep/" + run + "/" + name), text);
  }

  /// A script that writes down its words where the configuration is there.
  std::string noting_words() { return "[ -s \"$2\" ] && echo \"$@\" >> " + (dir_ / "words").string(); }

  /// What it writes down of a run that begins with this flag.
  std::string words(const std::string& run, const std::string& flag) {
    return fmt::format("train {0}/{1}/next.toml --out {0}/{1} {2}--verbose\n", (dir_ / "sweep").string(), run,
                       flag);
  }

  test::TempDir dir_;
  Sweep sweep_{"s", "The title", {}};
};

/// What a run of another configuration left is replaced; what is none is for train to refuse.
TEST_F(RunnerOfASweep, TheProgramGetsTheWordsOfTrain) {
  Listener listener;
  write_in("b", "metrics.jsonl", "");
  write_in("c", "config.toml", "seed = 7\n");
  EXPECT_TRUE(train(noting_words(), listener));
  EXPECT_EQ(test::read_file(dir_ / "words"), words("a", "") + words("b", "--overwrite ") + words("c", ""));
  EXPECT_THAT(listener.ended, ElementsAre("0 done ", "1 done ", "2 done "));
}

TEST_F(RunnerOfASweep, ARunThatWasKilledAsItBeganIsResumed) {
  Listener listener;
  write_in("b", "config.toml", to_toml(sweep_.runs[1].config));
  EXPECT_TRUE(train(noting_words(), listener));
  EXPECT_EQ(test::read_file(dir_ / "words"), words("a", "") + words("b", "--resume ") + words("c", ""));
}

TEST_F(RunnerOfASweep, WhatCannotBeReadFailsAndStaysUnlessItIsToBeReplaced) {
  Listener listener;
  write_in("b", "status.json", "");
  EXPECT_TRUE(train(noting_words(), listener));
  EXPECT_EQ(test::read_file(dir_ / "words"), words("a", "") + words("c", ""));
  EXPECT_THAT(
      listener.ended,
      ElementsAre("0 done ", testing::MatchesRegex("1 failed [^\n]*b/status.json: is not JSON.*"), "2 done "));
  EXPECT_EQ(test::read_file(dir_ / "sweep/b/status.json"), "");

  std::filesystem::remove(dir_ / "words");
  EXPECT_TRUE(train(noting_words(), listener, 1, true));
  EXPECT_THAT(test::read_file(dir_ / "words"), testing::HasSubstr(words("b", "--overwrite ")));
}

TEST_F(RunnerOfASweep, ExitStatusAndLogSayHowARunEnded) {
  Listener listener;
  EXPECT_TRUE(
      train("case $4 in */a) exit 3;; */b) echo 'strait: the disk is full'; exit 1;; *) kill -9 $$;; esac",
            listener));
  EXPECT_THAT(listener.ended,
              ElementsAre("0 diverged ", "1 failed the disk is full", "2 failed killed by signal Killed"));
}

TEST_F(RunnerOfASweep, AFailureWithoutAWordHasItsExitStatusForAReason) {
  std::filesystem::create_directories(dir_ / "sweep/b/log.txt");  // so that its process cannot begin
  Listener listener;
  EXPECT_TRUE(train("case $4 in */a) exit 1;; esac", listener));
  const auto silent = [&](const char* run, int status) {
    return fmt::format("exit status {}, and {}/{}/log.txt does not say why", status, (dir_ / "sweep").string(),
                       run);
  };
  EXPECT_THAT(listener.ended,
              ElementsAre("0 failed " + silent("a", 1), "1 failed " + silent("b", 127), "2 done "));
}

TEST_F(RunnerOfASweep, EveryRunIsAProcessByItself) {
  const std::vector<std::string> names = {
      "RANK",         "WORLD_SIZE",          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
      "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"};
  std::string seen;
  std::list<test::Variable> of_a_launcher;
  for (const auto& name : names) {
    of_a_launcher.emplace_back(name, "3");
    seen += "$" + name;
  }
  Listener listener;
  EXPECT_TRUE(train("echo \"(" + seen + ")\" >> " + (dir_ / "words").string(), listener));
  EXPECT_EQ(test::read_file(dir_ / "words"), "()\n()\n()\n");
}

/// Does not take what it hears, as where standard output is a full disk.
class FullListener : public Listener {
 public:
  void on_epoch(size_t, const EpochProgress&) override { throw Error("standard output cannot be written"); }
};

TEST_F(RunnerOfASweep, WhereItsEndCannotBeToldTheOthersStopInOrder) {
  const EpochMetrics epoch{.epoch = 0, .steps = 1, .train = {}, .test = {}, .boundaries = {}, .stages = {}};
  test::write_file(dir_ / "line", to_line(epoch) + "\n");
  FullListener listener;
  const std::string script =
      "case $4 in */a) sleep 0.3; cat " + (dir_ / "line").string() +
      " > $4/metrics.jsonl; exit 0;; *) trap 'touch $4/stopped; exit 130' TERM; while true; do "
      "sleep 0.01; done;; esac";
  EXPECT_EQ(test::message_of<Error>([&] { train(script, listener, 2); }), "standard output cannot be written");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "sweep/b/stopped"));
}

TEST_F(RunnerOfASweep, StopsWhatRunsWhenItIsAskedTo) {
  Listener listener(2);
  EXPECT_FALSE(train("trap 'exit 130' TERM; while true; do sleep 0.01; done", listener, 2));
  EXPECT_THAT(listener.started, ElementsAre(0, 1));
  EXPECT_THAT(listener.ended, UnorderedElementsAre("0 stopped ", "1 stopped "));
}

}  // namespace
}  // namespace strait
