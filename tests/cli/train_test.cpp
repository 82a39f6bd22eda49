// The command as a person runs it: real training on a few drawn pictures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strait/formats/safetensors.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kConfig = R"(name = "tiny"
seed = 7
[model]
width = 2
[data]
kind = "shapes"
train_limit = 60
test_limit = 30
batch_size = 20
[train]
epochs = 2
threads = 1
[pipeline]
micro_batches = 2
[compression]
activations = { codec = "quant:4,scope=sample", feedback = "none" }
gradients = { codec = "topk:0.25", feedback = "none" }
)";

class Train : public testing::Test {
 protected:
  Train() { test::write_file(config_, kConfig); }

  test::ProcessResult train(const std::string& config, const std::string& out,
                            const std::vector<std::string>& flags = {}) {
    std::vector<std::string> arguments = {"train", config, "--out", dir_ / out};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return test::run_process(STRAIT_PROGRAM, arguments);
  }

  json status(const std::string& run) { return json::parse(test::read_file(dir_ / (run + "/status.json"))); }

  std::vector<json> metrics(const std::string& run) { return test::metrics_of(dir_ / run); }

  test::TempDir dir_;
  std::string config_ = dir_ / "tiny.toml";
};

TEST_F(Train, LeavesTheFilesOfTheContract) {
  const auto run = train(config_, "run");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("epoch 2/2"));
  EXPECT_EQ(status("run").at("status"), "done");
  EXPECT_EQ(status("run").at("epochs_done"), 2);
  const auto epochs = metrics("run");
  ASSERT_EQ(epochs.size(), 2U);
  EXPECT_EQ(epochs[1].at("epoch"), 1);
  EXPECT_EQ(epochs[1].at("test").at("samples"), 30);
  EXPECT_EQ(epochs[1].at("steps"), 3);
  const auto& layer1 = epochs[1].at("boundaries").at(0);
  EXPECT_EQ(layer1.at("name"), "layer1");
  EXPECT_EQ(layer1.at("activations").at("raw_bytes"), 60 * 2 * 32 * 32 * 4);
  EXPECT_GT(layer1.at("activations").at("ratio").get<double>(), 7);
  EXPECT_GT(layer1.at("gradients").at("ratio").get<double>(), 3);
  const TensorFile model = read_safetensors(dir_ / "run/model.safetensors");
  EXPECT_NE(model.find("layer4.1.bn2.running_var"), nullptr);
  std::vector<std::string> event_files;
  for (const auto& name : test::names_in(dir_ / "run")) {
    if (name.starts_with("events.out.tfevents.")) event_files.push_back(test::read_file(dir_ / "run" / name));
  }
  ASSERT_EQ(event_files.size(), 1U);
  EXPECT_THAT(event_files[0], AllOf(HasSubstr("test_off/loss"), HasSubstr("test_plain/loss")));
  EXPECT_THAT(event_files[0], Not(HasSubstr("test_by_step")));
}

TEST_F(Train, EvaluatesWithinEpochsAndSaysWhatOnIs) {
  const auto run = train(config_, "run",
                         {"--set", "train.evaluate_every=2", "--set", "compression.activations.feedback=ef",
                          "--set", "compression.evaluation=frozen"});
  ASSERT_EQ(run.status, 0) << run.err;  // three steps per epoch
  EXPECT_THAT(run.out,
              testing::ContainsRegex("\nstep 2  test off [0-9.]+%  on \\(frozen\\) [0-9.]+%  plain [0-9.]+%  "
                                     "live [0-9.]+%\n"));
  EXPECT_THAT(run.out, testing::ContainsRegex("\nepoch 2/2 .*test off [0-9.]+%  on \\(frozen\\) "));
  const auto epochs = metrics("run");
  EXPECT_EQ(epochs.at(0).at("evaluations").size(), 1U);
  EXPECT_EQ(epochs.at(1).at("evaluations").at(0).at("step"), 4);
  EXPECT_EQ(epochs.at(1).at("evaluations").at(1).at("test"), epochs.at(1).at("test"));
  for (const auto& epoch : epochs) EXPECT_EQ(epoch.at("test").at("on"), epoch.at("test").at("frozen"));
  const auto names = test::names_in(dir_ / "run");
  const auto events =
      std::ranges::find_if(names, [](const auto& name) { return name.starts_with("events.out.tfevents."); });
  ASSERT_NE(events, names.end());
  EXPECT_THAT(test::read_file(dir_ / "run" / *events),
              AllOf(HasSubstr("test_frozen/loss"), HasSubstr("test_by_step_live/accuracy")));
}

TEST_F(Train, AnEpochThatIsNotDueIsNotScored) {
  const auto run = train(config_, "run", {"--set", "train.evaluate_epochs=5"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, testing::ContainsRegex("\nepoch 1/2  train loss [0-9.]+  accuracy [0-9.]+%  ratio "));
  EXPECT_THAT(run.out, testing::ContainsRegex("\nepoch 2/2 .*test off [0-9.]+%  on "));
  EXPECT_FALSE(metrics("run").at(0).contains("test"));
  EXPECT_TRUE(metrics("run").at(1).contains("test"));
}

TEST_F(Train, TheResolvedConfigurationRepeatsTheRunBitForBit) {
  ASSERT_EQ(train(config_, "a", {"--set", "train.optimizer.lr=0.02"}).status, 0);
  ASSERT_EQ(train(dir_ / "a/config.toml", "b").status, 0);
  EXPECT_EQ(test::read_file(dir_ / "a/config.toml"), test::read_file(dir_ / "b/config.toml"));
  EXPECT_EQ(test::read_file(dir_ / "a/model.safetensors"), test::read_file(dir_ / "b/model.safetensors"));
  EXPECT_EQ(status("a").at("config_hash"), status("b").at("config_hash"));
}

TEST_F(Train, EvaluationOfTheWeightsGivesTheLastEpochsScores) {
  ASSERT_EQ(train(config_, "run").status, 0);
  const auto eval = test::run_process(STRAIT_PROGRAM,
                                      {"eval", config_, "--weights", dir_ / "run/model.safetensors", "--json"});
  ASSERT_EQ(eval.status, 0) << eval.err;
  EXPECT_EQ(json::parse(eval.out), metrics("run").back().at("test"));
  const auto text =
      test::run_process(STRAIT_PROGRAM, {"eval", config_, "--weights", dir_ / "run/model.safetensors"});
  EXPECT_THAT(text.out, HasSubstr("accuracy"));
}

TEST_F(Train, ARunIsNotOverwrittenUnasked) {
  ASSERT_EQ(train(config_, "run").status, 0);
  const auto again = train(config_, "run");
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("holds a run already"));
  EXPECT_EQ(metrics("run").size(), 2U);
  EXPECT_EQ(train(config_, "run", {"--overwrite", "--set", "train.epochs=1"}).status, 0);
  EXPECT_EQ(metrics("run").size(), 1U);
}

TEST_F(Train, AConfigurationInTheFolderIsNotReplacedUnasked) {
  std::filesystem::create_directory(dir_ / "run");
  const std::string config = dir_ / "run/config.toml";
  test::write_file(config, kConfig);
  const auto refused = train(config, "run");
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err,
            "strait: " + (dir_ / "run").string() +
                ": holds config.toml, which a run may replace; choose another --out, or let it with "
                "--overwrite\n");
  EXPECT_EQ(test::read_file(config), kConfig);
  EXPECT_EQ(train(config, "run", {"--overwrite"}).status, 0);
  EXPECT_NE(test::read_file(config), kConfig);
}

TEST_F(Train, ADivergedRunSaysSoAndKeepsItsMetrics) {
  const auto run = train(config_, "run", {"--set", "train.optimizer.lr=1e18", "--set", "train.epochs=5"});
  EXPECT_EQ(run.status, 3);
  EXPECT_THAT(run.err, testing::StartsWith("strait: training diverged: "));
  EXPECT_EQ(status("run").at("status"), "diverged");
  EXPECT_TRUE(std::filesystem::exists(dir_ / "run/metrics.jsonl"));
}

TEST_F(Train, AStopSignalEndsTheRunInOrder) {
  const std::string out = dir_ / "run";
  // Far more epochs than the test waits for; the shell sends the signal once an epoch has been written.
  const std::string script = "'" STRAIT_PROGRAM "' train " + config_ + " --out " + out +
                             " --set train.epochs=100000 & pid=$!; for i in $(seq 600); do [ -s " + out +
                             "/metrics.jsonl ] && break; sleep 0.1; done; kill -INT $pid; wait $pid";
  const auto run = test::run_process("/bin/bash", {"-c", script});
  EXPECT_EQ(run.status, 130) << run.err;
  EXPECT_THAT(run.out, HasSubstr("stopped after"));
  EXPECT_EQ(status("run").at("status"), "stopped");
  EXPECT_NO_THROW(read_safetensors(dir_ / "run/model.safetensors"));
}

}  // namespace
}  // namespace strait
