// `strait sweep` as a person runs it: child processes that really train, on a few drawn pictures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "strait/base/cores.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kBase = R"(name = "s"
title = "Tiny"
[model]
width = 4
[data]
kind = "shapes"
train_limit = 40
test_limit = 20
batch_size = 20
[train]
epochs = 1
threads = 1
)";

/// More epochs than a test waits for.
constexpr const char* kEndless = "train.epochs = 100000\n";

std::string variant(const std::string& name, const std::string& keys = "") {
  return "[[variants]]\nname = \"" + name + "\"\n" + keys;
}

class SweepCommand : public testing::Test {
 protected:
  void write_sweep(const std::string& variants) { test::write_file(file_, kBase + variants); }

  test::ProcessResult sweep(const std::string& out, std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"sweep", file_, "--out", dir_ / out});
    return test::run_process(STRAIT_PROGRAM, flags);
  }

  /// Starts the sweep in the shell and, when the run has written an epoch, does `action`, for which $pid is
  /// the sweep; then waits for its end.
  test::ProcessResult sweep_and(const std::string& action, const std::string& run) {
    const std::string out = dir_ / "out";
    return test::run_process(
        "/bin/bash",
        {"-c", "'" STRAIT_PROGRAM "' sweep " + file_ + " --out " + out + " & pid=$!; until [ -s " + out + "/" +
                   run + "/metrics.jsonl ] || ! kill -0 $pid; do sleep 0.05; done; " + action + "; wait $pid"});
  }

  json read_json(const std::string& name) { return json::parse(test::read_file(dir_ / name)); }

  /// The runs' statuses in sweep.json.
  std::vector<std::string> statuses(const std::string& out) {
    const json record = read_json(out + "/sweep.json");
    std::vector<std::string> found;
    for (const auto& run : record.at("runs")) found.push_back(run.at("status"));
    return found;
  }

  /// Whether a process of this test's folder runs.
  bool any_left() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "cmdline");
      std::string words;
      std::getline(in, words);
      if (words.find(dir_.path()) != std::string::npos) return true;
    }
    return false;
  }

  test::TempDir dir_;
  std::string file_ = dir_ / "sweep.toml";
};

TEST_F(SweepCommand, TrainsWhatIsNotFinishedAndPrintsATable) {
  write_sweep(variant("none") + variant("q", "compression.activations.codec = \"quant:4\"\n"));
  const auto first = sweep("out");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.err, "");
  EXPECT_THAT(first.out, HasSubstr("none  epoch 1/1  train loss "));
  EXPECT_THAT(first.out, HasSubstr("[1/2] none done after "));
  EXPECT_THAT(first.out, HasSubstr("[2/2] q done after "));
  EXPECT_THAT(first.out, testing::ContainsRegex("run +off % +on % on is +train loss +bytes per step .*\n"
                                                "none +[0-9.]+ +[0-9.]+ plain .*\nq +[0-9.]+ +[0-9.]+ plain "));
  EXPECT_THAT(test::read_file(dir_ / "out/none/log.txt"), HasSubstr("epoch 1/1"));
  const auto written = std::filesystem::last_write_time(dir_ / "out/none/metrics.jsonl");

  write_sweep(variant("none") + variant("q", "compression.activations.codec = \"quant:2\"\n"));
  const auto refused = sweep("out");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "strait: " + (dir_ / "out").string() +
                             ": there are runs of another configuration than the sweep's: q "
                             "(compression.activations.codec); --overwrite replaces them\n");
  const auto second = sweep("out", {"--overwrite"});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.out, Not(HasSubstr("none  epoch")));
  EXPECT_THAT(second.out, HasSubstr("[2/2] q done after "));
  EXPECT_EQ(std::filesystem::last_write_time(dir_ / "out/none/metrics.jsonl"), written);
}

// The link decides what such a run computes, so that one over another link is another run.
TEST_F(SweepCommand, WithCodecsChosenByTimeALinkIsPartOfTheConfiguration) {
  const std::string by_time =
      "compression.gradients.codec = \"auto\"\ncompression.auto.ladder = [\"none\", \"quant:4\"]\n";
  write_sweep(variant("slow", by_time + "pipeline.link = \"900Mbps\"\n") +
              variant("fast", by_time + "pipeline.link = \"9Gbps\"\n"));
  const auto first = sweep("out");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(read_json("out/slow/status.json").at("config_hash"),
            read_json("out/fast/status.json").at("config_hash"));

  write_sweep(variant("slow", by_time + "pipeline.link = \"900Mbps\"\n") +
              variant("fast", by_time + "pipeline.link = \"8Gbps\"\n"));
  const auto refused = sweep("out");
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("another configuration than the sweep's: fast (pipeline.link); --overwrite"));
}

TEST_F(SweepCommand, SeveralJobsGiveTheSameBitsAsOne) {
  write_sweep(variant("a") + variant("b", "seed = 1\n") +
              variant("c", "compression.gradients.codec = \"quant:4,rounding=stochastic\"\n"));
  ASSERT_EQ(sweep("one").status, 0);
  ASSERT_EQ(sweep("two", {"--jobs", "2"}).status, 0);
  for (const std::string run : {"a", "b", "c"}) {
    EXPECT_EQ(test::read_file(dir_ / ("one/" + run + "/model.safetensors")),
              test::read_file(dir_ / ("two/" + run + "/model.safetensors")))
        << run;
    EXPECT_EQ(read_json("one/" + run + "/status.json").at("config_hash"),
              read_json("two/" + run + "/status.json").at("config_hash"));
  }
  EXPECT_EQ(read_json("one/sweep.json"), read_json("two/sweep.json"));
}

TEST_F(SweepCommand, AllCoresMeansAJobsShareOfThem) {
  write_sweep(variant("a", "train.threads = 0\n") + variant("b", "train.threads = 0\nseed = 1\n"));
  ASSERT_EQ(sweep("one", {"--only", "a"}).status, 0);
  ASSERT_EQ(sweep("two", {"--jobs", "2"}).status, 0);
  const int all = read_json("one/a/status.json").at("threads");
  EXPECT_EQ(all, static_cast<int>(available_cores().size()));
  const int shares = read_json("two/a/status.json").at("threads").get<int>() +
                     read_json("two/b/status.json").at("threads").get<int>();
  EXPECT_EQ(shares, all);
  EXPECT_EQ(test::read_file(dir_ / "one/a/config.toml"), test::read_file(dir_ / "two/a/config.toml"));
}

TEST_F(SweepCommand, ADivergedRunIsRecordedAndNotRepeated) {
  write_sweep(variant("bad", "train.optimizer.lr = 1e18\ntrain.epochs = 5\n") + variant("good"));
  const auto first = sweep("out");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("bad diverged after "));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"diverged", "done"}));
  const auto second = sweep("out");
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.out, Not(HasSubstr(" after ")));
  EXPECT_THAT(second.out, HasSubstr("bad  diverged"));
}

TEST_F(SweepCommand, AFailedRunIsRecordedAndTheOthersGoOn) {
  write_sweep(variant("wrong", "data.train_limit = 99999999\n") + variant("good"));
  const auto run = sweep("out");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, "strait: 1 of 2 runs failed: wrong; see log.txt in the folder of each\n");
  EXPECT_THAT(run.out, HasSubstr("wrong failed: data.train_limit is 99999999"));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"failed", "done"}));
  EXPECT_THAT(read_json("out/sweep.json").at("runs").at(0).at("error").get<std::string>(),
              testing::StartsWith("data.train_limit is 99999999"));
}

// It would be replaced by a run that may come out the same, or not.
TEST_F(SweepCommand, ResultsWithoutTheirStatusAreNotReplacedUnasked) {
  write_sweep(variant("a") + variant("b", "seed = 1\n"));
  ASSERT_EQ(sweep("out").status, 0);
  const std::string metrics = test::read_file(dir_ / "out/a/metrics.jsonl");
  std::filesystem::remove(dir_ / "out/a/status.json");
  const auto refused = sweep("out");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "strait: " + (dir_ / "out").string() +
                             ": there are runs of another configuration than the sweep's: a (without its "
                             "status.json); --overwrite replaces them\n");
  EXPECT_EQ(test::read_file(dir_ / "out/a/metrics.jsonl"), metrics);
  EXPECT_EQ(sweep("out", {"--only", "b"}).status, 0);
  EXPECT_EQ(sweep("out", {"--overwrite"}).status, 0);
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"done", "done"}));
}

TEST_F(SweepCommand, AStatusThatCannotBeReadConcernsItsRunAlone) {
  write_sweep(variant("a") + variant("b", "seed = 1\n"));
  ASSERT_EQ(sweep("out", {"--only", "a"}).status, 0);
  const std::string metrics = test::read_file(dir_ / "out/a/metrics.jsonl");
  test::write_file(dir_ / "out/a/status.json", "");
  const auto other = sweep("out", {"--only", "b"});
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"failed", "done"}));

  const auto all = sweep("out");
  EXPECT_EQ(all.status, 1);
  EXPECT_EQ(all.err, "strait: 1 of 2 runs failed: a; see log.txt in the folder of each\n");
  EXPECT_THAT(all.out, testing::ContainsRegex("\na +failed: [^\n]*out/a/status.json: is not JSON"));
  EXPECT_THAT(all.out, testing::ContainsRegex("\nb +[0-9.]+ +[0-9.]+ plain "));
  EXPECT_EQ(test::read_file(dir_ / "out/a/metrics.jsonl"), metrics);
  const auto replaced = sweep("out", {"--overwrite"});
  EXPECT_EQ(replaced.status, 0) << replaced.err;
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"done", "done"}));
}

TEST_F(SweepCommand, ResultsThatCannotBeReadLeaveTheOthersInTheTable) {
  write_sweep(variant("a") + variant("b", "seed = 1\n") + variant("wrong", "data.train_limit = 99999999\n"));
  ASSERT_EQ(sweep("out", {"--only", "a", "--only", "b"}).status, 0);
  std::filesystem::remove(dir_ / "out/a/metrics.jsonl");
  const auto run = sweep("out", {"--only", "a", "--only", "b"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.err, "strait: the results of 1 of 2 runs cannot be read: a\n");
  EXPECT_THAT(run.out, testing::ContainsRegex("\na +unreadable: [^\n]*out/a/metrics.jsonl: [^\n]*\n"
                                              "b +[0-9.]+ +[0-9.]+ plain "));
  EXPECT_EQ(sweep("out").err,
            "strait: 1 of 3 runs failed: wrong; see log.txt in the folder of each; the results of 1 of 3 runs "
            "cannot be read: a\n");
}

// Its results are still those of the configuration that they were trained with.
TEST_F(SweepCommand, ARunThatCannotBeginLeavesWhatWasThere) {
  write_sweep(variant("a"));
  ASSERT_EQ(sweep("out").status, 0);
  const auto names = test::names_in(dir_ / "out/a");
  const auto config = test::read_file(dir_ / "out/a/config.toml");
  write_sweep(variant("a", "data.train_limit = 99999999\n"));
  EXPECT_EQ(sweep("out", {"--overwrite"}).status, 1);
  EXPECT_EQ(test::read_file(dir_ / "out/a/config.toml"), config);
  EXPECT_EQ(test::names_in(dir_ / "out/a"), names);
}

TEST_F(SweepCommand, WhereItCannotWriteEveryRunStopsInOrder) {
  write_sweep(variant("a", kEndless) + variant("b", kEndless + std::string("seed = 1\n")));
  const std::string out = dir_ / "out";
  const std::string begun = "[ -s " + out + "/a/metrics.jsonl -a -s " + out + "/b/metrics.jsonl ]";
  const auto run = test::run_process(
      "/bin/bash",
      {"-c", "'" STRAIT_PROGRAM "' sweep " + file_ + " --jobs 2 --out " + out + " & pid=$!; until " + begun +
                 " || ! kill -0 $pid; do sleep 0.05; done; rm " + out + "/sweep.json; mkdir -p " + out +
                 "/sweep.json/x; kill -KILL $(cut -d ' ' -f 1 /proc/$pid/task/$pid/children); wait $pid"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("sweep.json"));
  EXPECT_FALSE(any_left());
  std::set<std::string> ends;
  for (const char* name : {"a", "b"}) {
    ends.insert(read_json("out/" + std::string(name) + "/status.json").at("status").get<std::string>());
  }
  EXPECT_EQ(ends, (std::set<std::string>{"failed", "stopped"}));
}

TEST_F(SweepCommand, AKilledRunIsRecordedAndTheOthersGoOn) {
  write_sweep(variant("long", kEndless) + variant("short"));
  const auto run = sweep_and("kill -KILL $(cat /proc/$pid/task/$pid/children)", "long");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("failed: killed by signal Killed"));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"failed", "done"}));
  EXPECT_EQ(read_json("out/long/status.json").at("status"), "failed");
}

TEST_F(SweepCommand, AStopSignalStopsEveryRunInOrder) {
  write_sweep(variant("long", kEndless) + variant("next"));
  const auto run = sweep_and("kill -INT $pid", "long");
  EXPECT_EQ(run.status, 130) << run.err;
  EXPECT_FALSE(any_left());
  EXPECT_THAT(run.out, HasSubstr("stopped; the same command resumes"));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"stopped", "waiting"}));
  EXPECT_EQ(read_json("out/long/status.json").at("status"), "stopped");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "out/long/model.safetensors"));
}

TEST_F(SweepCommand, AHangUpStopsEveryRunInOrder) {
  write_sweep(variant("long", kEndless) + variant("next"));
  EXPECT_EQ(sweep_and("kill -HUP $pid", "long").status, 130);
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"stopped", "waiting"}));
}

// Neither another sweep nor a training comes into the folders of one that runs; its own runs do.
TEST_F(SweepCommand, ItsFoldersAreItsOwn) {
  write_sweep(variant("long", kEndless));
  const std::string out = dir_ / "out";
  const std::string again = "'" STRAIT_PROGRAM "' sweep " + file_ + " --out " + out;
  const std::string train = "'" STRAIT_PROGRAM "' train " + out + "/long/config.toml --resume --out " + out;
  const auto run = sweep_and(
      again + "; a=$?; " + train + "/long; b=$?; " + train + "; echo statuses $a $b $?; kill -INT $pid",
      "long");
  EXPECT_EQ(run.status, 130);
  const std::string sentence = ": another process trains here\n";
  EXPECT_EQ(run.err,
            "strait: " + out + sentence + "strait: " + out + "/long" + sentence + "strait: " + out + sentence);
  EXPECT_THAT(run.out, HasSubstr("statuses 2 2 2\n"));
  EXPECT_EQ(statuses("out"), std::vector<std::string>{"stopped"});
}

TEST_F(SweepCommand, ARunWhoseFolderIsTakenFailsAndTheOthersGoOn) {
  write_sweep(variant("taken", kEndless) + variant("free", "seed = 1\n"));
  const std::string taken = dir_ / "out/taken";
  const std::string base = kBase;
  test::write_file(dir_ / "endless.toml", "name = \"endless\"\n" + base.substr(base.find("[model]")));
  test::Process other(STRAIT_PROGRAM,
                      {"train", dir_ / "endless.toml", "--set", "train.epochs=100000", "--out", taken});
  while (!other.has_ended() && !std::filesystem::exists(taken + "/status.json")) std::this_thread::yield();
  const std::string config = test::read_file(taken + "/config.toml");
  const auto run = sweep("out");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("taken failed after "));
  EXPECT_THAT(run.out, HasSubstr("taken: another process trains here"));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"failed", "done"}));
  EXPECT_EQ(test::read_file(taken + "/config.toml"), config);
  EXPECT_EQ(read_json("out/taken/status.json").at("status"), "running");
}

TEST_F(SweepCommand, AKilledSweepLeavesNoRunBehind) {
  write_sweep(variant("long", kEndless));
  EXPECT_EQ(sweep_and("kill -KILL $pid", "long").status, 128 + 9);
  while (any_left())
    std::this_thread::yield();  // the kernel takes a moment; the test's time limit is the bound
  EXPECT_EQ(read_json("out/long/status.json").at("status"), "running");
}

TEST_F(SweepCommand, TrainsTheNamedVariantsOnly) {
  test::write_file(file_,
                   "seeds = [0, 1]\n" + std::string(kBase) + variant("a") + variant("b", "train.epochs = 2\n"));
  const auto run = sweep("out", {"--only", "b"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("[2/2] b-seed1 done"));
  EXPECT_THAT(run.out, Not(HasSubstr("a-seed0")));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"waiting", "waiting", "done", "done"}));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "out/a-seed0"));
}

TEST_F(SweepCommand, TrainsAllVariantsWithOneSeedBeforeTheNext) {
  test::write_file(file_,
                   "seeds = [0, 1]\n" + std::string(kBase) + variant("a") + variant("b", "train.epochs = 2\n"));
  const auto one = sweep("out", {"--seed", "1"});
  ASSERT_EQ(one.status, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("[2/2] b-seed1 done"));
  EXPECT_EQ(statuses("out"), (std::vector<std::string>{"waiting", "done", "waiting", "done"}));

  const auto all = sweep("all");
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.out, testing::ContainsRegex("1/4. a-seed0(.|\n)*2/4. b-seed0(.|\n)*3/4. a-seed1"));
}

}  // namespace
}  // namespace strait
