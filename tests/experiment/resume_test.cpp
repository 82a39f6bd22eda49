// Interrupted and resumed runs against undisturbed ones, in one process.

#include <ATen/core/ivalue.h>
#include <ATen/ops/allclose.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/experiment/stopped_runs.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Resume : public test::StoppedRuns {};

struct Scheme {
  std::string codec;
  std::string feedback;
  int micro_batches;
  std::vector<std::string> more = {};  ///< other keys
};

class ResumeBitForBit : public Resume, public testing::WithParamInterface<Scheme> {};

// An epoch has 4 batches of training and, for every mode that is scored, 2 of evaluation, which a resume begins
// anew: 4 at most without feedback and 8 with it. Stopping after one more meets the begin, the middle and the
// end of epochs and of evaluations.
TEST_P(ResumeBitForBit, EqualsTheUndisturbedRun) {
  const auto& [codec, feedback, micro_batches, more] = GetParam();
  std::vector<std::string> keys = {fmt::format("pipeline.micro_batches={}", micro_batches)};
  for (const char* direction : {"activations", "gradients"}) {
    keys.push_back(fmt::format("compression.{}.codec=\"{}\"", direction, codec));
    keys.push_back(fmt::format("compression.{}.feedback=\"{}\"", direction, feedback));
  }
  keys.insert(keys.end(), more.begin(), more.end());
  const Config config = config_with(keys);
  EXPECT_EQ(run(config, "whole").status, RunStatus::done);
  const auto& cuts = config.model.cuts;
  const bool scores_state = has_feedback(config.compression, cuts);
  EXPECT_GE(resume_to_the_end(config, "parts", scores_state ? 9 : 5), 3);
  expect_equal_runs("whole", "parts");
  EXPECT_EQ(checkpoints("parts"), checkpoints("whole"));
  for (const char* file : {"optimizer.safetensors", "links.safetensors", "random.safetensors"}) {
    const fs::path path = fs::path("checkpoint/epoch-0003-batch-00000") / file;
    EXPECT_EQ(test::read_file(dir_ / "parts" / path), test::read_file(dir_ / "whole" / path)) << file;
  }
}

/// Feedback at one boundary, activations' and gradients', and none at the others.
const std::vector<std::string> kOneBoundary = {
    R"(compression.boundaries=[{name="layer2", activations={feedback="ef21"}, gradients={feedback="ef"}}])"};
const std::vector<std::string> kOneStore = {
    R"(compression.boundaries=[{name="layer3", activations={codec="quant:4", feedback="aq-sgd"}}])"};

/// Whose store is filled in the warm-up, in which no other boundary has state.
const std::vector<std::string> kOneFilledStore = {
    R"(compression.boundaries=[{name="layer3", activations={codec="quant:4", feedback="aq-sgd,fill=warmup"}}])",
    "compression.start_epoch=2"};

const std::vector<std::string> kAqSgd = {"compression.activations.feedback=aq-sgd"};

std::vector<std::string> aq_sgd_in(const std::string& place, const std::string& format) {
  return {kAqSgd[0], "compression.store.place=" + place, "compression.store.format=" + format};
}

// 3 batches make a step, and the last of the epoch one of its own.
const std::vector<std::string> kAdamW = {"train.optimizer.kind=adamw",       "train.optimizer.lr=0.01",
                                         "train.optimizer.weight_decay=0.1", "train.schedule.kind=linear",
                                         "train.schedule.warmup_steps=2",    "train.accumulate=3"};

INSTANTIATE_TEST_SUITE_P(
    Schemes, ResumeBitForBit,
    testing::Values(
        Scheme{"none", "none", 1}, Scheme{"none", "none", 2}, Scheme{"quant:4,rounding=stochastic", "none", 2},
        Scheme{"quant:4", "none", 1}, Scheme{"topk:0.2", "ef", 1}, Scheme{"topk:0.2", "ef", 1, kAdamW},
        Scheme{"topk:0.2", "ef", 2}, Scheme{"topk:0.2", "ef21", 1}, Scheme{"quant:4,scope=sample", "ef21", 2},
        Scheme{"topk:0.2", "ef-mixed", 2}, Scheme{"topk:0.2", "none", 2, {"compression.reuse_indices=true"}},
        Scheme{"topk:0.2", "none", 2, kOneBoundary}, Scheme{"topk:0.2", "ef", 2, kOneStore},
        Scheme{"topk:0.2", "ef", 1, kOneFilledStore}, Scheme{"topk:0.2", "none", 1, kAqSgd},
        Scheme{"topk:0.2", "ef", 2, aq_sgd_in("file", "quant:8")},
        Scheme{"quant:4", "none", 2, aq_sgd_in("file", "bf16")},
        Scheme{"topk:0.2", "ef21,slots=sample", 2, {"compression.store.format=quant:4"}},
        Scheme{"topk:0.2", "ef21,slots=class", 1}, Scheme{"none", "none", 2, {"model.bottleneck=1"}}),
    [](const auto& info) { return "case" + std::to_string(info.index); });

TEST_F(Resume, InitialWeightsAreReadAtTheBeginningOnly) {
  const std::vector<std::string> mlp = {"train.epochs=1", "model.kind=mlp", "model.cuts=[\"hidden.0\"]"};
  run(config_with(mlp), "first");
  Config config = config_with(mlp);
  config.train.optimizer.lr = 1e-12;
  const fs::path init = dir_ / "init.safetensors";
  fs::copy_file(dir_ / "first" / "model.safetensors", init);
  config.model.settings.set("init", init.string());
  run(config, "whole");
  const auto weight_of = [](const fs::path& path) { return *read_safetensors(path).find("hidden.0.weight"); };
  EXPECT_TRUE(at::allclose(weight_of(dir_ / "whole" / "model.safetensors"), weight_of(init)));

  EXPECT_EQ(run(config, "parts", Start::fresh, 2).status, RunStatus::stopped);
  fs::remove(init);
  Config other = config;  // as where the width came from the config.json beside these weights
  other.model.settings.set("width", 256);
  EXPECT_THAT(
      error_of(other, "parts", Start::resume),
      HasSubstr("the run has model.width = 2, the configuration 256; --resume cannot change it; model.init: "
                "no file " +
                init.string()));
  other.model.settings.set("init", "");
  EXPECT_THAT(error_of(other, "parts", Start::resume), testing::Not(HasSubstr("model.init: no file")));
  EXPECT_NO_THROW(describe_experiment(config, dir_ / "parts", Start::resume, RankTopology(), 1));
  EXPECT_EQ(run(config, "parts", Start::resume).status, RunStatus::done);
  expect_equal_runs("whole", "parts");
  EXPECT_THAT(error_of(config, "more", Start::fresh), HasSubstr(init.string()));
}

TEST_F(Resume, GoesOnAfterEveryBatchWhereItIsStopped) {
  const Config config = config_with({"train.epochs=1"});
  run(config, "whole");
  for (int batches = 0; batches < 6; ++batches) {  // 4 of training and 2 of evaluation
    EXPECT_EQ(run(config, "parts", Start::replace, batches).status, RunStatus::stopped);
    EXPECT_EQ(run(config, "parts", Start::resume).status, RunStatus::done);
    expect_equal_runs("whole", "parts");
  }
}

TEST_F(Resume, MoreEpochsGoOnFromTheEnd) {
  run(config_with({}), "whole");
  run(config_with({"train.epochs=2"}), "parts");
  const RunOutcome outcome = run(config_with({}), "parts", Start::resume);
  EXPECT_EQ(outcome.epochs.size(), 3U);
  EXPECT_THAT(notes_.at(0), HasSubstr("resuming from"));
  expect_equal_runs("whole", "parts");
  EXPECT_THAT(error_of(config_with({"train.epochs=2"}), "parts", Start::resume),
              HasSubstr("train.epochs: expected at least 3"));
}

TEST_F(Resume, SaysThatAnotherMachineMayRoundOtherwise) {
  run(config_with({"train.epochs=2"}), "run");
  run(config_with({}), "run", Start::resume);
  EXPECT_THAT(notes_, Not(Contains(HasSubstr("round otherwise"))));
  const fs::path status = dir_ / "run/status.json";
  nlohmann::json record = nlohmann::json::parse(test::read_file(status));
  record["machine"] = "an abacus, 1 thread";
  std::ofstream(status) << record;
  run(config_with({"train.epochs=4"}), "run", Start::resume);
  EXPECT_THAT(notes_, Contains(HasSubstr("the run was on an abacus, 1 thread, this is ")));
}

TEST_F(Resume, AFinishedRunIsLeftAlone) {
  run(config_with({}), "run");
  const std::string status = test::read_file(dir_ / "run/status.json");
  EXPECT_EQ(run(config_with({"train.threads=2", "checkpoint.keep=5"}), "run", Start::resume).status,
            RunStatus::done);
  EXPECT_THAT(notes_.at(0), HasSubstr("finished"));
  EXPECT_EQ(test::read_file(dir_ / "run/status.json"), status);
  fs::remove_all(dir_ / "run/checkpoint");
  run(config_with({}), "run", Start::resume);
  EXPECT_THAT(notes_.at(0), HasSubstr("finished"));
  EXPECT_THAT(error_of(config_with({"train.epochs=4"}), "run", Start::resume),
              HasSubstr("has no checkpoint to resume from"));
}

TEST_F(Resume, WithoutACheckpointItStartsFromTheBeginning) {
  run(config_with({}), "whole");
  run(config_with({}), "empty", Start::resume);
  EXPECT_THAT(notes_.at(0), HasSubstr("starting from the beginning"));
  expect_equal_runs("whole", "empty");

  // As after a crash in the first epoch.
  run(config_with({}), "crashed", Start::fresh, 2);
  fs::remove_all(dir_ / "crashed/checkpoint");
  EXPECT_THAT(error_of(config_with({"seed=8"}), "crashed", Start::resume),
              HasSubstr("crashed/config.toml: the run has seed = 7, the configuration 8"));
  run(config_with({}), "crashed", Start::resume);
  expect_equal_runs("whole", "crashed");
}

TEST_F(Resume, TheConfigurationMustBeTheRuns) {
  run(config_with({}), "run", Start::fresh, 6);
  EXPECT_THAT(
      error_of(config_with({"train.optimizer.lr=0.5", "compression.start_epoch=3"}), "run", Start::resume),
      HasSubstr("position.json: the run has train.optimizer.lr = 0.01, the configuration 0.5"));
  EXPECT_THAT(error_of(config_with({"compression.gradients.codec=fp16"}), "run", Start::resume),
              HasSubstr("compression.gradients.codec = \"none\", the configuration \"fp16\""));
  EXPECT_EQ(run(config_with({"name=other", "train.device=cpu", "checkpoint.keep=2", "pipeline.schedule=gpipe"}),
                "run", Start::resume)
                .status,
            RunStatus::done);
}

/// A pipeline that is drained for a checkpoint has one version of every weight, of which a resume makes the
/// bits of the run that went on. An epoch has four batches of two steps, of which the last has one.
TEST_F(Resume, AStreamEqualsTheRunThatWasDrainedAtTheSamePlaces) {
  for (const std::string schedule : {"pipedream", "xpipe"}) {
    const Config config =
        config_with({"pipeline.schedule=" + schedule, "pipeline.micro_batches=2", "checkpoint.every_steps=4",
                     "train.optimizer.kind=adamw",
                     R"(compression.gradients={codec="topk:0.2,scope=sample", feedback="ef"})"});
    const std::string whole = schedule + "-whole";
    const std::string parts = schedule + "-parts";
    EXPECT_EQ(run(config, whole).status, RunStatus::done);
    EXPECT_EQ(run(config, parts, Start::fresh, 1).status, RunStatus::stopped);
    EXPECT_EQ(checkpoints(parts), std::vector<std::string>{"epoch-0000-batch-00002"});
    EXPECT_EQ(run(config, parts, Start::resume).status, RunStatus::done);
    expect_equal_runs(whole, parts);

    // Within an epoch a drain is a part of what is computed; at its end there is one in any case.
    Config seldom = config;
    seldom.checkpoint.every_steps = 0;
    EXPECT_EQ(run(seldom, schedule).status, RunStatus::done);
    EXPECT_NE(test::read_file(dir_ / schedule / "model.safetensors"),
              test::read_file(dir_ / whole / "model.safetensors"));
  }
}

TEST_F(Resume, WhatAStepIsStaysTheSame) {
  run(config_with({}), "flushed", Start::fresh, 1);
  EXPECT_THAT(error_of(config_with({"pipeline.schedule=pipedream"}), "flushed", Start::resume),
              HasSubstr("the run has pipeline.schedule = \"1f1b\", the configuration \"pipedream\""));
  run(config_with({"pipeline.schedule=pipedream"}), "stream", Start::fresh, 1);
  EXPECT_THAT(error_of(config_with({"pipeline.schedule=pipedream", "pipeline.micro_batches=2"}), "stream",
                       Start::resume),
              HasSubstr("the run has pipeline.micro_batches = 1, the configuration 2"));
}

TEST_F(Resume, ThereIsNoOtherEndForALinearSchedule) {
  const auto linear = [](const std::string& epochs, const std::string& kind) {
    return config_with(
        {"train.schedule.kind=linear", "train.epochs=" + epochs, "train.optimizer.kind=" + kind});
  };
  run(linear("2", "adamw"), "run");
  EXPECT_THAT(error_of(linear("3", "adamw"), "run", Start::resume),
              HasSubstr("position.json: the run has train.epochs = 2, the configuration 3"));
  EXPECT_THAT(error_of(linear("2", "sgd"), "run", Start::resume),
              HasSubstr("the run has train.optimizer.kind = \"adamw\", the configuration \"sgd\""));
}

TEST_F(Resume, MetricsAreCutBackToTheCheckpoint) {
  const Config config = config_with({"checkpoint.keep=9"});
  run(config, "run");
  run(config, "whole");
  fs::remove_all(dir_ / "run/checkpoint/epoch-0003-batch-00000");
  fs::remove_all(dir_ / "run/checkpoint/epoch-0002-batch-00000");
  test::write_file(dir_ / "run/metrics.jsonl", test::read_file(dir_ / "run/metrics.jsonl") + "{\"epo");
  run(config, "run", Start::resume);
  expect_equal_runs("whole", "run");
  EXPECT_EQ(std::ranges::count_if(test::names_in(dir_ / "run"),
                                  [](const auto& name) { return name.starts_with("events.out.tfevents."); }),
            1);
}

// A checkpoint has the lines before it, so that nothing hangs on a file that is still being written.
TEST_F(Resume, MetricsThatWereLostOrChangedComeFromTheCheckpoint) {
  const Config config = config_with({"checkpoint.keep=9"});
  run(config, "whole");
  run(config, "run");
  const std::string metrics = test::read_file(dir_ / "run/metrics.jsonl");
  std::string flipped = metrics;
  flipped[metrics.find("train_loss") + 14] ^= 1;
  for (const auto& content : {flipped, std::string(), metrics.substr(0, 40)}) {
    fs::remove_all(dir_ / "run/checkpoint/epoch-0003-batch-00000");
    test::write_file(dir_ / "run/metrics.jsonl", content);
    run(config, "run", Start::resume);
    EXPECT_THAT(notes_,
                testing::Contains(HasSubstr("run/metrics.jsonl: is not what it was at the checkpoint")));
    EXPECT_TRUE(
        test::read_file(dir_ / "run/metrics.jsonl").starts_with(metrics.substr(0, metrics.find('\n') + 1)));
    expect_equal_runs("whole", "run");
  }
  fs::remove_all(dir_ / "run/checkpoint/epoch-0003-batch-00000");
  run(config, "run", Start::resume);
  EXPECT_THAT(notes_, testing::Not(testing::Contains(HasSubstr("is not what it was"))));
}

// Stopped at the last batch of an epoch, or in its evaluation: all of its training was before.
TEST_F(Resume, AnEpochThatIsResumedAtItsEndKeepsItsMeasurements) {
  const Config config = config_with({"compression.gradients.codec=\"topk:0.2\"", "compression.diagnostics=1",
                                     "compression.gradients.feedback=ef", "pipeline.micro_batches=2"});
  run(config, "whole");
  for (const int batches : {3, 4, 5}) {
    EXPECT_EQ(run(config, "parts", Start::replace, batches).status, RunStatus::stopped);
    EXPECT_EQ(run(config, "parts", Start::resume).status, RunStatus::done);
    const auto whole = test::metrics_of(dir_ / "whole").at(0);
    const auto parts = test::metrics_of(dir_ / "parts").at(0);
    ASSERT_EQ(parts.at("stages").size(), 4U);
    for (const auto& stage : parts.at("stages")) EXPECT_GT(stage.at("forward_seconds").get<double>(), 0);
    EXPECT_GT(parts.at("bubble_share").get<double>(), 0);
    EXPECT_LT(parts.at("bubble_share").get<double>(), 1);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(parts.at("boundaries").at(i).at("gradients").at("diagnostics"),
                whole.at("boundaries").at(i).at("gradients").at("diagnostics"));
    }
  }
}

TEST_F(Resume, AFolderInPlaceOfAFileIsNamed) {
  for (const std::string name : {"status.json", "metrics.jsonl", "config.toml"}) {
    run(config_with({"train.epochs=2"}), "run", Start::replace, 8);
    fs::remove(dir_ / "run" / name);
    fs::create_directories(dir_ / "run" / name / "inside");
    EXPECT_THAT(error_of(config_with({"train.epochs=2"}), "run", Start::resume),
                HasSubstr("run/" + name + ": "))
        << name;
    fs::remove_all(dir_ / "run");
  }
}

TEST_F(Resume, ACheckpointThatCannotBeReachedLeavesTheOldRun) {
  const Config config = config_with({"train.epochs=2"});
  run(config, "run", Start::fresh, 8);
  const fs::path checkpoint = dir_ / "run/checkpoint";
  const std::string weights = test::read_file(dir_ / "run/model.safetensors");
  fs::rename(checkpoint, dir_ / "elsewhere");
  fs::create_symlink("checkpoint", checkpoint);  // to itself
  EXPECT_EQ(error_of(config, "run", Start::resume),
            checkpoint.string() + ": cannot be read: Too many levels of symbolic links");
  EXPECT_EQ(test::read_file(dir_ / "run/model.safetensors"), weights);
}

// What only the data can refute is found before the folder is made.
TEST_F(Resume, AConfigurationThatTheDataRefuteLeavesNoFolder) {
  const Config config = config_with({"train.schedule.kind=linear", "train.schedule.warmup_steps=13"});
  EXPECT_THAT(
      error_of(config, "run", Start::fresh),
      HasSubstr("train.schedule.warmup_steps: expected at most 12, the steps of the training, found 13"));
  EXPECT_FALSE(fs::exists(dir_ / "run"));
}

TEST_F(Resume, OtherCutsFitWhereThereIsNoFeedbackState) {
  run(config_with({}), "whole");
  run(config_with({}), "run", Start::fresh, 8);
  EXPECT_EQ(run(config_with({"model.cuts=[\"layer2\"]"}), "run", Start::resume).status, RunStatus::done);
  EXPECT_EQ(test::read_file(dir_ / "run/model.safetensors"), test::read_file(dir_ / "whole/model.safetensors"));
  const auto whole = test::metrics_of(dir_ / "whole");
  const auto cut = test::metrics_of(dir_ / "run");
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(cut[i]["test"], whole[i]["test"]) << i;
  // What crossed in the epoch of the change, by all the boundaries that there were.
  EXPECT_EQ(cut[1]["boundaries"].size(), 3U);
  EXPECT_EQ(cut[2]["boundaries"].size(), 1U);
}

TEST_F(Resume, OtherCutsAreSimulatedOverNetworksFromThenOn) {
  const std::string networks = R"(networks=[{name="home", bandwidth="1Mbps"}])";
  run(config_with({networks}), "run", Start::fresh, 8);
  EXPECT_EQ(run(config_with({networks, R"(model.cuts=["layer2"])"}), "run", Start::resume).status,
            RunStatus::done);
  const auto epochs = test::metrics_of(dir_ / "run");
  ASSERT_EQ(epochs.size(), 3U);
  EXPECT_EQ(epochs[0]["stages"].size(), 4U);
  EXPECT_EQ(epochs[1]["stages"].size(), 2U);
  double seconds = 0;
  for (const auto& epoch : epochs) {
    ASSERT_EQ(epoch["networks"].size(), 1U);
    EXPECT_GT(epoch["networks"]["home"]["seconds"], seconds);
    seconds = epoch["networks"]["home"]["seconds"];
  }
  EXPECT_LT(epochs[1]["networks"]["home"]["step_seconds"], epochs[0]["networks"]["home"]["step_seconds"]);
}

TEST_F(Resume, OtherCutsFromTheEndOfAnEpochHaveNoTimesOfItsNetworks) {
  const std::string networks = R"(networks=[{name="home", bandwidth="1Mbps"}])";
  // Of the second cuts the first two stages are those of before, which have their times.
  for (const auto& [name, cuts] :
       {std::pair("one", R"(model.cuts=["layer2"])"), std::pair("two", R"(model.cuts=["layer1", "layer2"])")}) {
    SCOPED_TRACE(name);
    run(config_with({networks}), name, Start::fresh, 4 + 2 + 4 + 1);  // in the second evaluation
    EXPECT_EQ(run(config_with({networks, cuts}), name, Start::resume).status, RunStatus::done);
    const auto epochs = test::metrics_of(dir_ / name);
    ASSERT_EQ(epochs.size(), 3U);
    EXPECT_EQ(epochs[1]["networks"]["home"]["seconds"], epochs[0]["networks"]["home"]["seconds"]);
    EXPECT_GT(epochs[2]["networks"]["home"]["seconds"], epochs[0]["networks"]["home"]["seconds"]);
  }
}

// What only the codecs can refute is found before the old run goes.
TEST_F(Resume, ACodecThatSavesNothingLeavesTheOldRun) {
  run(config_with({"train.epochs=1"}), "run");
  const auto before = test::names_in(dir_ / "run");
  const auto metrics = test::read_file(dir_ / "run/metrics.jsonl");
  const Config larger = config_with({"compression.activations.codec=\"topk:0.99,index=bitmap\""});
  EXPECT_THAT(error_of(larger, "run", Start::replace), HasSubstr("expected no more than there are without"));
  EXPECT_EQ(test::names_in(dir_ / "run"), before);
  EXPECT_EQ(test::read_file(dir_ / "run/metrics.jsonl"), metrics);
  EXPECT_THAT(error_of(larger, "new", Start::fresh), HasSubstr("expected no more than there are without"));
  EXPECT_EQ(run(config_with({"train.epochs=1"}), "new").status, RunStatus::done);
}

TEST_F(Resume, OtherCutsDoNotFitFeedbackState) {
  const std::vector<std::string> ef = {"compression.gradients.codec=\"topk:0.2\"",
                                       "compression.gradients.feedback=ef"};
  const auto with_cuts = [&](const std::string& cuts) {
    auto keys = ef;
    keys.push_back("model.cuts=" + cuts);
    return config_with(keys);
  };
  run(with_cuts("[\"layer1\", \"layer2\"]"), "run", Start::fresh, 8);
  EXPECT_THAT(
      error_of(with_cuts("[\"layer1\"]"), "run", Start::resume),
      HasSubstr("links.safetensors: tensor \"layer2.gradients.sender.residual\" belongs to no boundary"));
  EXPECT_THAT(error_of(with_cuts("[\"layer1\", \"layer2\", \"layer3\"]"), "run", Start::resume),
              HasSubstr("links.safetensors: has no feedback state of boundary \"layer3\""));
  EXPECT_EQ(run(with_cuts("[\"layer1\", \"layer2\"]"), "run", Start::resume).status, RunStatus::done);
}

TEST_F(Resume, ACorruptCheckpointIsNamedAndNotPassedOver) {
  const Config config = config_with({"checkpoint.keep=2"});
  run(config, "run", Start::fresh, 8);
  const fs::path newest = dir_ / "run/checkpoint" / checkpoints("run").back();
  const std::string metrics = test::read_file(dir_ / "run/metrics.jsonl");
  for (const char* file :
       {"model.safetensors", "optimizer.safetensors", "random.safetensors", "position.json"}) {
    const std::string whole = test::read_file(newest / file);
    std::string flipped = whole;
    flipped[flipped.size() - 30] ^= 1;
    test::write_file(newest / file, flipped);
    EXPECT_THAT(error_of(config, "run", Start::resume),
                AllOf(HasSubstr(file), AnyOf(HasSubstr("checksum"), HasSubstr("is not the position"),
                                             HasSubstr("is not JSON"))));
    test::write_file(newest / file, whole.substr(0, whole.size() - 5));
    EXPECT_THAT(error_of(config, "run", Start::resume), HasSubstr((newest / file).string() + ": "));
    fs::remove(newest / file);
    EXPECT_THAT(error_of(config, "run", Start::resume), HasSubstr(file));
    test::write_file(newest / file, whole);
  }
  EXPECT_EQ(test::read_file(dir_ / "run/metrics.jsonl"), metrics);
  EXPECT_EQ(run(config, "run", Start::resume).status, RunStatus::done);
}

TEST_F(Resume, ADivergedRunKeepsItsLastCheckpoint) {
  const Config config = config_with({"train.optimizer.lr=1e18", "checkpoint.every_steps=1"});
  EXPECT_EQ(run(config, "run").status, RunStatus::diverged);
  EXPECT_EQ(checkpoints("run").size(), 1U);
  EXPECT_EQ(run(config, "run", Start::resume).status, RunStatus::diverged);
}

TEST_F(Resume, AFreshRunDoesNotTouchCheckpoints) {
  run(config_with({}), "run", Start::fresh, 8);
  fs::remove(dir_ / "run/metrics.jsonl");
  EXPECT_THAT(error_of(config_with({}), "run", Start::fresh), HasSubstr("holds a run already"));
  EXPECT_EQ(checkpoints("run").size(), 1U);
  run(config_with({"train.epochs=1"}), "run", Start::replace);
  EXPECT_EQ(checkpoints("run"), std::vector<std::string>{"epoch-0001-batch-00000"});
}

}  // namespace
}  // namespace strait
