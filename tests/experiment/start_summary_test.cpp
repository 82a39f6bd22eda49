#include "strait/experiment/start_summary.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/experiment/run.h"
#include "strait/formats/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kConfig = R"(name = "tiny"
[model]
width = 4
[data]
kind = "shapes"
train_limit = 80
test_limit = 20
batch_size = 20
[train]
epochs = 2
threads = 1
[pipeline]
micro_batches = 2
[compression]
activations = { codec = "quant:4,scope=sample", feedback = "ef21" }
gradients = { codec = "topk:0.2", feedback = "ef" }
)";

Config config_with(const std::vector<std::string>& overrides = {}) {
  return parse_config(kConfig, "tiny.toml", overrides);
}

Traffic expected_of(const Config& config) {
  Model model = make_network(config);
  const DataSplits splits = load_splits(config);
  return expected_traffic(config, model, splits.train->size(), splits.test->size());
}

/// What crossed all boundaries in the last epoch of a training of one process.
EpochMetrics last_epoch_of(const Config& config) {
  const test::TempDir dir;
  TrainObserver silent;
  return run_experiment(config, dir / "run", Start::fresh, silent).epochs.back();
}

/// Compares with what the last epoch of a training sent.
void expect_bytes_of_training(const std::vector<std::string>& overrides, double tolerance) {
  const Config config = config_with(overrides);
  const Traffic expected = expected_of(config);
  const EpochMetrics epoch = last_epoch_of(config);
  Traffic sent = epoch.total(Direction::activation);
  sent += epoch.total(Direction::gradient);
  const auto steps = static_cast<double>(epoch.steps);
  EXPECT_EQ(static_cast<double>(expected.raw_bytes), static_cast<double>(sent.raw_bytes) / steps);
  EXPECT_NEAR(static_cast<double>(expected.wire_bytes), static_cast<double>(sent.wire_bytes) / steps,
              tolerance * static_cast<double>(expected.wire_bytes));
}

TEST(ExpectedTraffic, IsExactWhereSizesDoNotDependOnValues) {
  expect_bytes_of_training({"compression.gradients={codec=\"quant:8,scope=sample\"}"}, 0);
  expect_bytes_of_training({"compression.gradients={codec=\"fp16\"}", "train.accumulate=2"}, 0);
}

TEST(ExpectedTraffic, OfABatchLargerThanTheTrainingSetIsThatOfItsSamples) {
  expect_bytes_of_training(
      {"compression.gradients={codec=\"quant:8,scope=sample\"}", "data.batch_size=1073741824"}, 0);
  const Config config = config_with({"data.batch_size=1073741824", "pipeline.micro_batches=1"});
  Model model = make_network(config);
  const auto text =
      testing::PrintToString(start_summary(config, "runs/tiny", model, load_splits(config), 1, 1));
  EXPECT_THAT(text, HasSubstr("1 micro-batch of 80 samples"));
  EXPECT_THAT(text, HasSubstr("2 epochs of 1 step with 80 samples"));
  EXPECT_THAT(test::message_of<InputError>([&] { expected_traffic(config, model, int64_t{1} << 30, 1); }),
              testing::StartsWith("data.batch_size: a message of 1,073,741,824 samples between stages"));
}

/// An mlp whose factors of rank 2 are smaller than 3 rows of 512 numbers, but not than 2.
TEST(ExpectedTraffic, OfFewerSamplesAtTheEndIsAskedForToo) {
  const auto complaint_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> keys = {"model.kind=mlp",
                                     "model.width=512",
                                     "model.cuts=[\"hidden.0\"]",
                                     "compression.activations={codec=\"lowrank:2\", feedback=\"none\"}",
                                     "compression.gradients={codec=\"none\", feedback=\"none\"}",
                                     "pipeline.micro_batches=1"};
    keys.insert(keys.end(), more.begin(), more.end());
    return test::message_of<InputError>([&] { expected_of(config_with(keys)); });
  };
  const char* message = "codec lowrank:2 takes a message of shape [2, 512]";
  EXPECT_THAT(complaint_of({"data.batch_size=11", "pipeline.micro_batches=4"}), HasSubstr(message))
      << "3, 3, 3 and 2";
  EXPECT_THAT(complaint_of({"data.batch_size=13", "data.train_limit=28"}), HasSubstr(message)) << "of training";
  EXPECT_THAT(complaint_of({"data.batch_size=4", "data.test_limit=22"}), HasSubstr(message)) << "of the test";
  EXPECT_NO_THROW(expected_of(config_with({"data.batch_size=4", "data.test_limit=20"})));
}

TEST(ExpectedTraffic, OfABottleneckIsThatOfItsChannels) {
  const std::vector<std::string> none = {"compression.activations={codec=\"none\", feedback=\"none\"}",
                                         "compression.gradients={codec=\"none\", feedback=\"none\"}"};
  auto narrow = none;
  narrow.push_back("model.bottleneck=2");
  expect_bytes_of_training(narrow, 0);
  // 2 channels in place of 4 of 32x32, 8 of 16x16 and 16 of 8x8 numbers.
  EXPECT_EQ(expected_of(config_with(none)).raw_bytes * (2 * (1024 + 256 + 64)),
            expected_of(config_with(narrow)).raw_bytes * (4 * 1024 + 8 * 256 + 16 * 64));
}

TEST(ExpectedTraffic, IsThatOfEachBoundarysOwnLinks) {
  expect_bytes_of_training(
      {"compression.gradients={codec=\"quant:8,scope=sample\"}",
       R"(compression.boundaries=[{name="layer2", activations={codec="fp16", feedback="none"}}])"},
      0);
}

TEST(ExpectedTraffic, IsNearWhereTheyDo) {
  expect_bytes_of_training({}, 0.05);
  expect_bytes_of_training(
      {"compression.activations={codec=\"topk:0.2\", feedback=\"none\"}",
       "compression.gradients={codec=\"topk:0.2\", feedback=\"none\"}", "compression.reuse_indices=true"},
      0.05);
}

TEST(ExpectedTraffic, OfDifferencesIsThatOfTheSecondVisit) {
  expect_bytes_of_training(
      {"compression.activations.feedback=aq-sgd", "compression.gradients.codec=\"quant:8,scope=sample\""}, 0);
}

TEST(ExpectedTraffic, MessagesThatTheirCodecMakesLongerAreRefused) {
  const auto refusal = [](const std::vector<std::string>& overrides) {
    try {
      expected_of(config_with(overrides));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  // 10 samples with 4 channels of 32 x 32: of each value 31.999 bits and more than a 500th of one for the
  // index.
  EXPECT_EQ(refusal({R"(compression.gradients={codec="topk:0.99,index=bitmap"})"}),
            "boundary layer1, gradients: codec \"topk:0.99,index=bitmap\" makes 167410 bytes of a message of "
            "163840; "
            "expected no more than there are without compression");
  EXPECT_THAT(
      refusal({R"(compression.activations={codec="bounded:0.000000001,scope=block:8", feedback="ef"})"}),
      HasSubstr(
          "boundary layer1, activations: codec \"bounded:0.000000001,scope=block:8\" makes 168960 bytes"));
  EXPECT_EQ(refusal({R"(compression.gradients={codec="none"})", R"(compression.activations={codec="topk:1"})"}),
            "");
}

TEST(ExpectedTraffic, CountsAllReplicas) {
  const Traffic one = expected_of(config_with({"pipeline.micro_batches=1"}));
  const Traffic two = expected_of(config_with({"pipeline.micro_batches=1", "pipeline.replicas=2"}));
  EXPECT_EQ(one.raw_bytes, two.raw_bytes);
}

TEST(StartSummary, SaysWhatTheRunWillDo) {
  const Config config = config_with();
  Model model = make_network(config);
  const auto lines = start_summary(config, "runs/tiny", model, load_splits(config), 4, 4);
  const std::string text = testing::PrintToString(lines);
  EXPECT_THAT(text, HasSubstr("tiny, into runs/tiny"));
  EXPECT_THAT(text, HasSubstr("resnet18, width 4, 44,622 parameters"));
  EXPECT_THAT(text,
              HasSubstr("4 stages in 4 processes, cut after layer1, layer2, layer3; 1f1b, 2 micro-batches "
                        "of 10 samples"));
  EXPECT_THAT(text, HasSubstr("shapes: 80 training samples and 20 test samples"));
  EXPECT_THAT(text, HasSubstr("2 epochs of 4 steps with 20 samples; sgd, learning rate 0.01, cosine"));
  EXPECT_THAT(text, HasSubstr("activations quant:4,scope=sample with ef21, gradients topk:0.2 with ef"));
  EXPECT_THAT(text, HasSubstr(" bytes without compression: ratio "));
  EXPECT_THAT(text, HasSubstr("cpu, 1 thread in each process"));
}

TEST(StartSummary, NamesTheFileOfSamplesAndWhatIsLearntFromIt) {
  const test::TempDir dir;
  const auto file = (dir / "mine.safetensors").string();
  const auto data_of = [&](const at::Tensor& targets) {
    write_safetensors(file, {{{"inputs", at::rand({6, 5})}, {"targets", targets}}, {}});
    const Config config = parse_config(fmt::format("model = {{ kind = \"mlp\" }}\n[data]\nkind = \"tensors\"\n"
                                                   "train_file = \"{0}\"\ntest_file = \"{0}\"\n",
                                                   file),
                                       "tensors.toml", {});
    Model model = make_network(config);
    return start_summary(config, "runs/run", model, load_splits(config), 1, 1).at(3);
  };
  const std::string samples = "tensors in " + file + ": 6 training samples and 6 test samples, for ";
  EXPECT_THAT(data_of(at::arange(6)), testing::EndsWith(samples + "classification"));
  EXPECT_THAT(data_of(at::arange(6).to(at::kFloat)), testing::EndsWith(samples + "regression"));
}

TEST(StartSummary, SaysWhereTheLearningRateEnds) {
  const auto training_of = [](const std::string& schedule) {
    const Config config = config_with({"train.schedule=" + schedule});
    Model model = make_network(config);
    return start_summary(config, "runs/tiny", model, load_splits(config), 1, 1).at(4);
  };
  // Of the second of two epochs, and of the last of 8 steps.
  EXPECT_THAT(training_of("{kind=\"cosine\", t_max=2}"),
              testing::EndsWith("learning rate 0.01, cosine to 0.005"));
  EXPECT_THAT(training_of("{kind=\"linear\"}"), testing::EndsWith("learning rate 0.01, linear to 0.00125"));
  EXPECT_THAT(training_of("{kind=\"constant\"}"), testing::EndsWith("learning rate 0.01, constant"));
}

// As torch.chunk cuts: all but the last of one size, and perhaps fewer than are asked for.
TEST(StartSummary, CountsTheMicroBatchesThatThereAre) {
  const auto stages_of = [](int64_t batch_size, int micro_batches) {
    const Config config = config_with({fmt::format("data.batch_size={}", batch_size),
                                       fmt::format("pipeline.micro_batches={}", micro_batches)});
    Model model = make_network(config);
    return start_summary(config, "runs/tiny", model, load_splits(config), 1, 1).at(2);
  };
  EXPECT_THAT(stages_of(12, 4), testing::EndsWith(" 1f1b, 4 micro-batches of 3 samples"));
  EXPECT_THAT(stages_of(10, 4), testing::EndsWith(" 1f1b, 4 micro-batches of up to 3 samples"));
  EXPECT_THAT(stages_of(10, 6), testing::EndsWith(" 1f1b, 5 micro-batches of 2 samples"));
  EXPECT_THAT(stages_of(9, 4), testing::EndsWith(" 1f1b, 3 micro-batches of 3 samples"));
  EXPECT_THAT(stages_of(150, 2), testing::EndsWith(" 1f1b, 2 micro-batches of up to 75 samples"));
  EXPECT_THAT(stages_of(1000, 2), testing::EndsWith(" 1f1b, 1 micro-batch of 80 samples"));
}

TEST(StartSummary, CountsTheParametersOfABottleneck) {
  const Config config = config_with({"model.bottleneck=3"});
  Model model = make_network(config);
  // 2 * 3 * (4 + 8 + 16) more, at cuts with 4, 8 and 16 channels.
  EXPECT_THAT(testing::PrintToString(start_summary(config, "runs/tiny", model, load_splits(config), 1, 1)),
              HasSubstr("44,790 parameters"));  // 44,622 without
}

TEST(StartSummary, NamesTheBoundariesThatDiffer) {
  const Config config =
      config_with({R"(compression.boundaries=[{name="layer2", activations={codec="fp16", feedback="none"}}])"});
  Model model = make_network(config);
  EXPECT_THAT(testing::PrintToString(start_summary(config, "runs/tiny", model, load_splits(config), 1, 1)),
              HasSubstr("activations quant:4,scope=sample with ef21, gradients topk:0.2 with ef; at layer2 "
                        "activations fp16, gradients topk:0.2 with ef"));
}

TEST(StartSummary, LeavesTheRandomNumbersAlone) {
  const Config config = config_with();
  const auto draw = [&](bool summary) {
    Model model = make_network(config);
    if (summary) start_summary(config, "runs/tiny", model, load_splits(config), 1, 1);
    return at::rand({3});
  };
  EXPECT_TRUE(at::equal(draw(true), draw(false)));
}

TEST(Description, OfEachProcessNamesItsStages) {
  const test::TempDir dir;
  const Config config = config_with();
  const auto lines = describe_experiment(config, dir / "run", Start::fresh, {.rank = 1, .ranks = 4}, 4);
  EXPECT_THAT(lines, ElementsAre("rank 1 of 4: stage 1 (layer2.0..layer2.1), 2,128 parameters"));
  const Config two =
      config_with({"pipeline.replicas=2", "pipeline.schedule=interleaved", "pipeline.stages_per_rank=2"});
  EXPECT_THAT(
      describe_experiment(two, dir / "run", Start::fresh, {.rank = 3, .ranks = 4, .replicas = 2}, 4),
      ElementsAre(HasSubstr("rank 3 of 4: stages 1 (layer2.0..layer2.1), 3 (layer4.0..head) of replica 1")));
}

TEST(Description, RefusesWhatTheRunWouldRefuseAndTouchesNothing) {
  const test::TempDir dir;
  const auto describe = [&](const Config& config, Start start = Start::fresh) {
    return describe_experiment(config, dir / "run", start, {}, 1);
  };
  EXPECT_GT(describe(config_with()).size(), 5U);
  EXPECT_THAT(describe(config_with({"compression.start_epoch=2"})),
              testing::Contains(
                  testing::EndsWith("; in no epoch, because compression.start_epoch is 2 and train.epochs 2")));
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
  EXPECT_THROW(describe(config_with({"data.train_limit=99999999"})), InputError);
  EXPECT_THROW(describe(config_with({"model.cuts=[\"layer9\"]"})), InputError);
  const auto stored = [&](const std::string& folder) {
    return config_with({"compression.activations.feedback=aq-sgd", "compression.store.place=file",
                        "compression.store.folder=" + folder});
  };
  EXPECT_THAT(test::message_of<InputError>([&] { describe(stored("/dev/null/x")); }),
              testing::StartsWith("compression.store.folder: /dev/null: cannot hold a file"));
  EXPECT_GT(describe(stored((dir / "a/b").string())).size(), 5U);
  EXPECT_FALSE(std::filesystem::exists(dir / "a"));
  EXPECT_THROW(describe(config_with({"compression.start_from=nowhere", "compression.start_epoch=1"})),
               InputError);
  EXPECT_THROW(describe_experiment(config_with(), dir / "run", Start::fresh, {.rank = 0, .ranks = 3}, 3),
               InputError);
  std::filesystem::create_directories(dir / "run");
  test::write_file(dir / "run/metrics.jsonl", "");
  EXPECT_THROW(describe(config_with()), InputError);
  EXPECT_NO_THROW(describe(config_with(), Start::replace));
  EXPECT_EQ(test::read_file(dir / "run/metrics.jsonl"), "");
}

}  // namespace
}  // namespace strait
