// Runs that start from another run's checkpoint.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/stopped_runs.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class WarmStart : public test::StoppedRuns {
 protected:
  /// Compression from epoch 2 on, after a warm-up of its own unless keys say otherwise.
  static Config compressed(std::vector<std::string> keys = {}) {
    for (const char* key : {"compression.activations.codec=\"quant:4\"",
                            "compression.activations.feedback=ef21", "compression.gradients.codec=\"topk:0.2\"",
                            "compression.gradients.feedback=ef", "compression.start_epoch=2"}) {
      keys.emplace_back(key);
    }
    return config_with(keys);
  }
  static std::string from(const fs::path& path) { return "compression.start_from=\"" + path.string() + "\""; }
};

TEST_F(WarmStart, EqualsTheRunThatWarmsUpByItself) {
  run(config_with({"checkpoint.keep_epochs=[2]"}), "source");
  EXPECT_EQ(checkpoints("source"),
            (std::vector<std::string>{"epoch-0002-batch-00000", "epoch-0003-batch-00000"}));
  run(compressed(), "own");
  auto tail = test::metrics_without_times(dir_ / "own");
  tail.erase(tail.begin(), tail.begin() + 2);
  const fs::path source = dir_ / "source";
  for (const auto& path : {source, source / "checkpoint", source / "checkpoint/epoch-0002-batch-00000"}) {
    run(compressed({from(path)}), "warm", Start::replace);
    EXPECT_THAT(notes_.at(0), HasSubstr("starting epoch 3 from"));
    EXPECT_EQ(test::read_file(dir_ / "warm/model.safetensors"),
              test::read_file(dir_ / "own/model.safetensors"));
    EXPECT_EQ(test::metrics_without_times(dir_ / "warm"), tail);
  }
}

TEST_F(WarmStart, CanBeResumedToo) {
  run(config_with({"checkpoint.keep_epochs=[2]"}), "source");
  const Config config = compressed({from(dir_ / "source"), "train.epochs=4"});
  run(config, "whole");
  EXPECT_GE(resume_to_the_end(config, "parts", 9), 2);
  expect_equal_runs("whole", "parts");
}

TEST_F(WarmStart, WithoutTheOptimizerItsStateBeginsAnew) {
  run(config_with({"checkpoint.keep_epochs=[2]"}), "source");
  run(compressed({from(dir_ / "source")}), "with");
  run(compressed({from(dir_ / "source"), "compression.start_from_optimizer=false"}), "without");
  EXPECT_NE(test::read_file(dir_ / "with/model.safetensors"),
            test::read_file(dir_ / "without/model.safetensors"));
  // Without momentum there is no state to take over.
  run(config_with({"checkpoint.keep_epochs=[2]", "train.optimizer.momentum=0"}), "plain");
  run(compressed({from(dir_ / "plain"), "train.optimizer.momentum=0"}), "a");
  run(compressed(
          {from(dir_ / "plain"), "train.optimizer.momentum=0", "compression.start_from_optimizer=false"}),
      "b");
  expect_equal_runs("a", "b");
}

TEST_F(WarmStart, TheCheckpointMustBeThere) {
  run(config_with({"train.epochs=2", "checkpoint.keep_epochs=[1]"}), "source");
  const auto error = [&](const std::string& epoch, const fs::path& path) {
    return error_of(config_with({"train.epochs=4", "compression.start_epoch=" + epoch, from(path)}), "run",
                    Start::fresh);
  };
  const fs::path source = dir_ / "source";
  EXPECT_THAT(error("3", source), AllOf(HasSubstr("compression.start_from: expected " + source.string()),
                                        HasSubstr("before epoch 3"), HasSubstr("found those before: 1, 2"),
                                        HasSubstr("checkpoint.keep_epochs")));
  EXPECT_THAT(error("0", source), HasSubstr("before epoch 0"));
  EXPECT_THAT(error("1", source / "checkpoint/epoch-0002-batch-00000"),
              HasSubstr("found one at batch 0 of epoch 2"));
  EXPECT_EQ(error("1", dir_ / "nowhere"), "compression.start_from: " + (dir_ / "nowhere").string() +
                                              ": expected the folder of a run or of a checkpoint");
  fs::create_directory(dir_ / "empty");
  EXPECT_THAT(error("1", dir_ / "empty"), HasSubstr("found those before: none"));
  fs::create_symlink("loop", dir_ / "loop");
  EXPECT_EQ(error("1", dir_ / "loop"),
            (dir_ / "loop").string() + ": cannot be read: Too many levels of symbolic links");
  EXPECT_FALSE(fs::exists(dir_ / "run"));
}

TEST_F(WarmStart, TheNetworkMustFit) {
  run(config_with({"train.epochs=1"}), "source");
  const auto error = error_of(
      config_with({"compression.start_epoch=1", "model.width=4", from(dir_ / "source")}), "run", Start::fresh);
  EXPECT_THAT(error,
              HasSubstr("model.safetensors: tensor \"conv1.weight\" is F32 of shape [2, 3, 3, 3], expected"));
}

}  // namespace
}  // namespace strait
