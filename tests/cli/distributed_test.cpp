// One process per stage: the bits of one process, stops in order, launchers. What goes wrong: faults_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <regex>
#include <set>

#include "strait/formats/safetensors.h"
#include "tests/cli/distributed_runs.h"
#include "tests/support/python.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// The bytes of every tensor in the files of that name of all parts of a run's last checkpoint. What both ends
/// of a channel keep must be the same at both, and counts once.
std::map<std::string, std::string> state_of(const fs::path& run, const std::string& file) {
  std::map<std::string, std::string> state;
  for (const auto& item : fs::recursive_directory_iterator(run / "checkpoint")) {
    if (item.path().filename() != file) continue;
    for (const auto& [full_name, tensor] : read_safetensors(item.path()).tensors) {
      const std::string name = std::regex_replace(full_name, std::regex("\\.(sender|receiver)\\."), ".");
      const std::string bytes(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
      EXPECT_TRUE(state.try_emplace(name, bytes).first->second == bytes) << full_name;
    }
  }
  return state;
}

class Distributed : public test::DistributedRuns {
 protected:
  /// Model, metrics, optimizer and feedback, whatever the number of processes.
  void expect_equal_states(const std::string& a, const std::string& b) const {
    expect_equal_runs(a, b);
    for (const char* file : {"optimizer.safetensors", "links.safetensors"}) {
      const auto state = state_of(dir_ / a, file);
      EXPECT_FALSE(state.empty());
      EXPECT_TRUE(state == state_of(dir_ / b, file)) << file;
    }
  }

  /// Four processes, then one, then four again, an epoch each.
  void expect_the_same_with_changing_ranks(const std::vector<std::string>& scheme) const {
    const auto flags = [&](const char* epochs) {
      std::vector<std::string> all = {"--resume", "--set", std::string("train.epochs=") + epochs};
      all.insert(all.end(), scheme.begin(), scheme.end());
      return all;
    };
    ASSERT_EQ(train("alone", scheme).status, 0);
    train_with_ranks("changed", flags("1"));
    const auto alone = train("changed", flags("2"));
    EXPECT_THAT(alone.out, HasSubstr("resuming from"));
    const auto last = train_with_ranks("changed", flags("3"));
    EXPECT_THAT(last.at(0).out, HasSubstr("resuming from"));
    expect_equal_states("alone", "changed");
  }
};

TEST_F(Distributed, FourProcessesAndOneAndFourGiveTheBitsOfOne) { expect_the_same_with_changing_ranks({}); }

TEST_F(Distributed, SoTheyDoWithStateOfSamples) {
  expect_the_same_with_changing_ranks({"--set", "compression.activations.feedback=aq-sgd", "--set",
                                       "compression.gradients.feedback=\"ef21,slots=sample\""});
}

TEST_F(Distributed, SoTheyDoWithStateOfClasses) {
  expect_the_same_with_changing_ranks({"--set", "pipeline.micro_batches=1", "--set",
                                       "compression.activations.feedback=\"ef21,slots=class\"", "--set",
                                       "compression.gradients.feedback=\"ef,slots=class\""});
}

TEST_F(Distributed, SoTheyDoWithABoundaryOfItsOwnKind) {
  expect_the_same_with_changing_ranks(
      {"--set",
       "compression.boundaries=[{name=\"layer2\", activations={codec=\"quant:4\", feedback=\"aq-sgd\"}, "
       "gradients={codec=\"fp16\", feedback=\"ef21\"}}]"});
}

TEST_F(Distributed, TheStateThatFourProcessesLeaveIsScoredByOne) {
  train_with_ranks("run");
  const auto scored = test::run_process(
      STRAIT_PROGRAM, {"eval", config_, "--weights", dir_ / "run/model.safetensors", "--json"});
  ASSERT_EQ(scored.status, 0) << scored.err;
  const auto scores = nlohmann::json::parse(scored.out);
  EXPECT_EQ(scores, test::metrics_of(dir_ / "run").back().at("test"));
  EXPECT_TRUE(scores.contains("live"));
}

// Whose micro-batches are of half a batch, in the test too.
TEST_F(Distributed, TheScoresOfReplicasAreThoseOfOneProcess) {
  std::vector<std::string> words = {"launch", "-n", "2", "--"};
  std::ranges::copy(
      arguments("run", {"--set", "pipeline.replicas=2", "--set", "compression.activations.codec=quant:4",
                        "--set", "compression.activations.feedback=none"}),
      std::back_inserter(words));
  const auto trained = test::run_process(STRAIT_PROGRAM, words);
  ASSERT_EQ(trained.status, 0) << trained.err;
  const auto scored = test::run_process(STRAIT_PROGRAM, {"eval", dir_ / "run", "--json"});
  ASSERT_EQ(scored.status, 0) << scored.err;
  EXPECT_EQ(nlohmann::json::parse(scored.out), test::metrics_of(dir_ / "run").back().at("test"));
}

TEST_F(Distributed, ATraceThatCannotBeWrittenEndsAllBeforeTheFirstStep) {
  const std::string trace = dir_ / "no/such/trace.json";
  auto all = start("run", {"--trace", trace});
  const auto results = all.wait(kLimit);
  const std::string reason = "--trace: " + trace + ": cannot be written: No such file or directory";
  EXPECT_EQ(results.at(0).status, 2);
  EXPECT_EQ(results.at(0).err, "strait: " + reason + "\n");
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_NE(results.at(rank).status, 0) << rank;
    EXPECT_THAT(results.at(rank).err, HasSubstr(reason)) << rank;
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

TEST_F(Distributed, ATraceMayLieInTheFolderOfTheRun) {
  const auto run = train("run", {"--trace", dir_ / "run/trace.json", "--set", "train.epochs=1"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(test::read_file(dir_ / "run/trace.json"), HasSubstr("traceEvents"));
}

TEST_F(Distributed, ReplicasGoOnToTheSameBits) {
  const auto flags = [](std::vector<std::string> all) {
    for (const char* key : {"pipeline.replicas=2", "model.cuts=[\"layer2\"]",
                            "compression.replicas.codec=topk:0.1", "compression.replicas.feedback=ef21"}) {
      all.insert(all.end(), {"--set", key});
    }
    return all;
  };
  train_with_ranks("uncut", flags({}));
  train_with_ranks("parts", flags({"--set", "train.epochs=1"}));
  train_with_ranks("parts", flags({"--resume"}));
  expect_equal_runs("uncut", "parts");
  const auto refused = train("parts", flags({"--resume"}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("expected 4 processes, one for each of the 2 stages that model.cuts makes "
                                     "in each of 2 pipeline.replicas, or 2; found 1"));
}

TEST_F(Distributed, OtherStagesTakeTheirLayersFromEachOther) {
  const auto flags = [](const char* cuts, const char* epochs) {
    std::vector<std::string> all = {"--resume"};
    for (const std::string& key : {std::string("model.cuts=") + cuts, std::string("train.epochs=") + epochs,
                                   std::string("compression.activations.feedback=none"),
                                   std::string("compression.gradients.feedback=none")}) {
      all.insert(all.end(), {"--set", key});
    }
    return all;
  };
  constexpr const char* kFirst = R"(["layer1", "layer2", "layer3"])";
  constexpr const char* kThen = R"(["stem", "layer2", "layer3"])";
  for (const char* out : {"alone", "moved"}) {
    for (const auto& stage : {flags(kFirst, "1"), flags(kThen, "3")}) {
      if (out == std::string("alone")) {
        ASSERT_EQ(train(out, stage).status, 0);
      } else {
        train_with_ranks(out, stage);
      }
    }
  }
  expect_equal_runs("alone", "moved");
}

TEST_F(Distributed, MachinesWithOtherDataAreNamed) {
  const auto arguments_with = [&](const std::string& machine, int64_t first) {
    const fs::path root = dir_ / machine;
    fs::create_directories(root);
    const at::Tensor targets = at::arange(first, first + 40).remainder(3);
    write_safetensors(root / "all.safetensors", {{{"inputs", at::ones({40, 6})}, {"targets", targets}}, {}});
    std::vector<std::string> flags;
    for (const std::string& key :
         {std::string("model.kind=mlp"), std::string("model.cuts=[\"hidden.0\"]"),
          std::string("data.kind=tensors"), std::string("data.train_file=all.safetensors"),
          std::string("data.test_file=all.safetensors"), "data.root=" + root.string(),
          std::string("data.train_limit=0"), std::string("data.test_limit=0")}) {
      flags.insert(flags.end(), {"--set", key});
    }
    return arguments("run", flags);
  };
  test::RankProcesses all(STRAIT_PROGRAM, 2, free_port());
  all.start(0, arguments_with("a", 0));
  all.start(1, arguments_with("b", 1));
  for (const auto& [rank, result] : all.wait(kLimit)) {
    EXPECT_EQ(result.status, 2) << rank;
    EXPECT_THAT(
        result.err,
        HasSubstr("strait: data: what rank 1 has is not what rank 0 has: 40 training and 40 test samples, "));
  }
  EXPECT_FALSE(fs::exists(dir_ / "run/config.toml"));
}

TEST_F(Distributed, MachinesWithOtherWeightsToStartFromAreNamed) {
  test::RankProcesses all("/bin/sh", 2, free_port());
  for (const int rank : {0, 1}) {
    const auto machine = std::to_string(rank);
    fs::create_directory(dir_ / machine);
    const std::string seed = "seed=" + machine;
    ASSERT_EQ(train(machine + "/source", {"--set", seed, "--set", "train.epochs=1"}).status, 0);
    std::vector<std::string> words = {"-c", "cd $0 && exec \"$@\"", dir_ / machine, STRAIT_PROGRAM};
    const auto flags =
        arguments("run", {"--set", "model.cuts=[\"layer2\"]", "--set", "compression.start_epoch=1", "--set",
                          "compression.start_from=source"});
    words.insert(words.end(), flags.begin(), flags.end());
    all.start(rank, words);
  }
  for (const auto& [rank, result] : all.wait(kLimit)) {
    EXPECT_EQ(result.status, 2) << rank;
    EXPECT_THAT(result.err,
                HasSubstr("strait: compression.start_from: what rank 1 has is not what rank 0 has: "));
  }
  EXPECT_FALSE(fs::exists(dir_ / "run/config.toml"));
}

TEST_F(Distributed, CtrlCAtTheLauncherStopsAllInOrder) {
  test::Process launcher(STRAIT_PROGRAM, launch_arguments("run", {"--set", "checkpoint.every_steps=4"}));
  wait_for_checkpoint("run", {}, [&] { return launcher.has_ended(); });
  launcher.send(SIGINT);
  const auto stopped = launcher.wait(kLimit);
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_EQ(stopped.err, "");
  EXPECT_THAT(stopped.out, HasSubstr("--resume resumes from it"));
  EXPECT_EQ(status("run").at("status"), "stopped");
  const auto resumed = test::run_process(STRAIT_PROGRAM, launch_arguments("run", {"--resume"}));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("[0] resuming from"));
  expect_equal_states(whole(), "run");
}

TEST_F(Distributed, AHangUpOfTheLauncherStopsAllInOrder) {
  test::Process launcher(STRAIT_PROGRAM, launch_arguments("run", {"--set", "checkpoint.every_steps=4", "--set",
                                                                  "train.epochs=1000"}));
  wait_for_checkpoint("run", {}, [&] { return launcher.has_ended(); });
  launcher.send(SIGHUP);
  EXPECT_EQ(launcher.wait(kLimit).status, 130);
  EXPECT_EQ(status("run").at("status"), "stopped");
}

TEST_F(Distributed, SigtermToOneRankStopsAllInOrder) {
  auto all = start("run", {"--set", "checkpoint.every_steps=4"});
  wait_for_checkpoint("run", {}, [&] { return all.have_all_ended(); });
  all.at(2).send(SIGTERM);
  for (const auto& [rank, result] : expect_all(all, 130)) EXPECT_EQ(result.err, "") << rank;
  EXPECT_EQ(status("run").at("status"), "stopped");
  train_with_ranks("run", {"--resume"});
  expect_equal_runs(whole(), "run");
}

TEST_F(Distributed, SchedulesThatStepForEveryMicroBatchResumeInFourProcessesAndInOne) {
  for (const std::string schedule : {"pipedream", "xpipe"}) {
    const std::string whole = schedule + "-whole";
    const std::vector<std::string> keys = {"--set", "pipeline.schedule=" + schedule, "--set", "train.epochs=2"};
    train_with_ranks(whole, keys);
    auto first = keys;
    first.back() = "train.epochs=1";
    auto then = keys;
    then.emplace_back("--resume");
    train_with_ranks(schedule, first);
    fs::copy(dir_ / schedule, dir_ / (schedule + "-alone"), fs::copy_options::recursive);
    train_with_ranks(schedule, then);
    expect_equal_runs(whole, schedule);
    ASSERT_EQ(train(schedule + "-alone", then).status, 0);
    expect_equal_runs(whole, schedule + "-alone");
  }
}

TEST_F(Distributed, FewerProcessesDoNotLeaveOutFeedbackStateOfOtherCuts) {
  train_with_ranks("run", {"--set", "train.epochs=1"});
  test::RankProcesses two(STRAIT_PROGRAM, 2, free_port());
  two.start_all(arguments("run", {"--resume", "--set", "model.cuts=[\"layer2\"]"}));
  std::string all;
  for (const auto& [rank, result] : two.wait(kLimit)) {
    EXPECT_EQ(result.status, 2) << rank << ": " << result.err;
    all += result.err;
  }
  EXPECT_THAT(all, HasSubstr("belongs to no boundary of model.cuts"));
}

TEST_F(Distributed, ATraceHasWhatEveryRankDid) {
  train_with_ranks("run", {"--set", "train.epochs=1", "--trace", dir_ / "trace.json"});
  const auto trace = nlohmann::json::parse(test::read_file(dir_ / "trace.json"));
  std::map<int, std::map<int, std::string>> lanes;
  std::map<int, std::set<std::string>> used;
  for (const auto& event : trace.at("traceEvents")) {
    const int rank = event.at("pid");
    if (event.at("ph") == "M") {
      if (event.at("name") == "thread_name") lanes[rank][event.at("tid")] = event.at("args").at("name");
      continue;
    }
    EXPECT_GE(event.at("dur"), 0);
    EXPECT_GT(event.at("ts"), 0);
    used[rank].insert(lanes.at(rank).at(event.at("tid")));
  }
  ASSERT_EQ(used.size(), 4U);
  for (const auto& [rank, names] : used) {
    EXPECT_THAT(names, testing::IsSupersetOf({"forward", "backward", "encode", "decode"})) << rank;
  }
}

// Without the redirects Debian 12's torchrun fails, of PyTorch 1.13 under Python 3.11.
TEST_F(Distributed, TorchrunStartsTheRanks) {
  std::vector<std::string> words = {"-m",
                                    "torch.distributed.run",
                                    "--no_python",
                                    "--nproc_per_node",
                                    std::to_string(kRanks),
                                    "--master_port",
                                    std::to_string(free_port()),
                                    "--redirects",
                                    "0:1",
                                    "--tee",
                                    "0:1",
                                    STRAIT_PROGRAM};
  const auto train = arguments("run");
  words.insert(words.end(), train.begin(), train.end());
  const auto result = test::run_process(test::torch_python(), words);
  EXPECT_EQ(result.status, 0) << result.err;
  expect_equal_runs(whole(), "run");
}

}  // namespace
}  // namespace strait
