#include "strait/train/trainer.h"

#include <gtest/gtest.h>

#include <torch/torch.h>
#include <nlohmann/json.hpp>
#include <set>

#include "strait/base/named_tensors.h"
#include "strait/formats/safetensors.h"
#include "strait/models/resnet18.h"
#include "strait/run/metrics_json.h"
#include "strait/train/optimizer.h"
#include "tests/support/temp_dir.h"
#include "tests/train/fixed_dataset.h"
#include "tests/train/state.h"

namespace strait {
namespace {

using test::expect_equal;

std::shared_ptr<const Dataset> random_data(int64_t samples) {
  torch::manual_seed(42);
  return std::make_shared<test::FixedDataset>(torch::randn({samples, 3, 32, 32}),
                                              torch::randint(10, {samples}));
}

TrainerOptions options(const std::string& activations, const std::string& gradients) {
  TrainerOptions options;
  options.batch_size = 8;
  options.train.epochs = 1;
  options.compression.activations.codec = activations;
  options.compression.gradients.codec = gradients;
  options.cuts = {"layer1", "layer2", "layer3"};
  return options;
}

Trainer trainer_of(const TrainerOptions& options, uint64_t seed = 1) {
  torch::manual_seed(seed);
  return {make_resnet18(2, 10), options};
}

test::State trained(TrainerOptions options, TrainObserver& observer) {
  Trainer trainer = trainer_of(options);
  trainer.train({random_data(20), random_data(10)}, observer);
  return trainer.collect_model().state();
}

test::State trained(const TrainerOptions& options) {
  TrainObserver observer;
  return trained(options, observer);
}

TEST(Trainer, TheSameSeedGivesTheSameBits) {
  const TrainerOptions scheme = options("quant:4,rounding=stochastic", "topk:0.2");
  expect_equal(trained(scheme), trained(scheme));
}

TEST(Trainer, WithoutCompressionTheCutsDoNotMatter) {
  TrainerOptions whole = options("none", "none");
  whole.cuts = {};
  expect_equal(trained(options("none", "none")), trained(whole));
}

struct Recorder : TrainObserver {
  void on_epoch(const EpochMetrics& metrics) override { epochs.push_back(metrics); }
  void on_evaluation(const StepEvaluation& evaluation) override { evaluations.push_back(evaluation); }
  std::vector<EpochMetrics> epochs;
  std::vector<StepEvaluation> evaluations;
};

TEST(Trainer, CompressionStartsAtItsEpoch) {
  TrainerOptions late = options("quant:2", "quant:2");
  late.compression.start_epoch = 1;
  expect_equal(trained(late), trained(options("none", "none")));

  late.train.epochs = 2;
  Trainer trainer = trainer_of(late);
  Recorder recorder;
  ASSERT_TRUE(trainer.train({random_data(20), random_data(10)}, recorder));
  ASSERT_EQ(recorder.epochs.size(), 2U);
  for (const Direction direction : {Direction::activation, Direction::gradient}) {
    const Traffic before = recorder.epochs[0].total(direction);
    const Traffic after = recorder.epochs[1].total(direction);
    EXPECT_EQ(before.messages, 9U);  // three steps, three boundaries
    EXPECT_EQ(before.wire_bytes, before.raw_bytes + 9 * kFrameHeaderSize);
    EXPECT_EQ(after.raw_bytes, before.raw_bytes);
    EXPECT_EQ(after.wire_bytes, before.raw_bytes / 16 + 9 * (kFrameHeaderSize + 8));  // 2 bits of 32, lo and hi
  }
  TrainerOptions never = options("none", "none");
  never.train.epochs = 2;
  const auto uncompressed = trained(never);
  const auto compressed = trainer.collect_model().state();
  EXPECT_FALSE(at::equal(compressed[0].second, uncompressed[0].second)) << compressed[0].first;
}

TEST(Trainer, CompressionEndsAtItsEpoch) {
  TrainerOptions early = options("quant:2", "quant:2");
  early.compression.end_epoch = 1;
  expect_equal(trained(early), trained(options("quant:2", "quant:2")));

  early.train.epochs = 2;
  Recorder recorder;
  ASSERT_TRUE(trainer_of(early).train({random_data(20), random_data(10)}, recorder));
  ASSERT_EQ(recorder.epochs.size(), 2U);
  for (const Direction direction : {Direction::activation, Direction::gradient}) {
    EXPECT_GT(recorder.epochs[0].total(direction).ratio(), 2);
    const Traffic after = recorder.epochs[1].total(direction);
    EXPECT_EQ(after.wire_bytes, after.raw_bytes + after.messages * kFrameHeaderSize);
  }
}

/// With feedback on both ways.
TrainerOptions with_feedback(const std::string& feedback = "ef21") {
  TrainerOptions scheme = options("topk:0.2", "topk:0.2");
  scheme.compression.activations.feedback = feedback;
  scheme.compression.gradients.feedback = "ef";
  scheme.train.epochs = 2;
  return scheme;
}

TEST(Trainer, ScoresEveryModeWhereActivationsHaveFeedback) {
  using enum EvaluationMode;
  const auto modes_of = [](const TrainerOptions& scheme) {
    Recorder recorder;
    Trainer trainer = trainer_of(scheme);
    trainer.train({random_data(20), random_data(20)}, recorder);
    return recorder.epochs.at(1).test.value();
  };
  TrainerOptions scheme = with_feedback("none");
  scheme.compression.evaluation = "live";
  const Evaluation without = modes_of(scheme);
  ASSERT_EQ(without.modes.size(), 1U) << "gradients do not cross in evaluation";
  EXPECT_EQ(without.on.loss, without.modes.at(plain).loss);
  for (const char* feedback : {"ef", "ef21", "ef-mixed"}) {
    scheme.compression.activations.feedback = feedback;
    const Evaluation test = modes_of(scheme);
    ASSERT_EQ(test.modes.size(), 3U);
    const std::set<double> losses = {test.off.loss, test.modes.at(plain).loss, test.modes.at(frozen).loss,
                                     test.modes.at(live).loss};
    EXPECT_EQ(losses.size(), 4U) << feedback;
    EXPECT_EQ(test.on.loss, test.modes.at(live).loss);
  }
  scheme.compression.activations.feedback = "aq-sgd";  // a test sample has no buffer: it crosses in full
  const Evaluation full = modes_of(scheme);
  EXPECT_EQ(full.modes.at(frozen).loss, full.off.loss);
  EXPECT_EQ(full.modes.at(live).loss, full.off.loss);
  EXPECT_NE(full.modes.at(plain).loss, full.off.loss);
}

TEST(Trainer, EvaluationWithinEpochsLeavesTrainingAlone) {
  for (const char* feedback : {"ef21", "aq-sgd"}) {
    const DataSplits data{random_data(20), random_data(10)};
    TrainerOptions scheme = with_feedback(feedback);
    Trainer undisturbed = trainer_of(scheme);
    Recorder expected;
    undisturbed.train(data, expected);
    scheme.train.evaluate_every = 1;
    scheme.compression.evaluation = "live";
    Trainer trainer = trainer_of(scheme);
    Recorder got;
    trainer.train(data, got);
    expect_equal(trainer.collect_model().state(), undisturbed.collect_model().state());
    for (size_t epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(got.epochs[epoch].train.loss, expected.epochs[epoch].train.loss);
      for (const auto& [mode, score] : expected.epochs[epoch].test->modes) {
        EXPECT_EQ(got.epochs[epoch].test->modes.at(mode).loss, score.loss) << to_string(mode);
      }
      EXPECT_EQ(got.epochs[epoch].total(Direction::activation).messages,
                expected.epochs[epoch].total(Direction::activation).messages);
    }
  }
}

TEST(Trainer, EvaluatesWithinEpochsAtTheirSteps) {
  const DataSplits data{random_data(20), random_data(10)};
  TrainerOptions scheme = with_feedback();
  scheme.train.evaluate_every = 2;
  Trainer trainer = trainer_of(scheme);
  Recorder got;
  trainer.train(data, got);  // three steps per epoch
  ASSERT_EQ(got.epochs.size(), 2U);
  const auto steps = [](const std::vector<StepEvaluation>& evaluations) {
    std::vector<uint64_t> all;
    for (const auto& evaluation : evaluations) all.push_back(evaluation.step);
    return all;
  };
  EXPECT_EQ(steps(got.epochs[0].evaluations), std::vector<uint64_t>{2});
  EXPECT_EQ(steps(got.epochs[1].evaluations), (std::vector<uint64_t>{4, 6}));
  EXPECT_EQ(steps(got.evaluations), (std::vector<uint64_t>{2, 4})) << "the sixth is the epoch's own";
  EXPECT_EQ(to_json(got.epochs[1].evaluations[1].test), to_json(*got.epochs[1].test));

  struct Stopper : TrainObserver {
    bool should_stop() override { return ++asked == 2; }
    int asked = 0;
  } stopper;
  Trainer stopped = trainer_of(with_feedback());
  ASSERT_FALSE(stopped.train(data, stopper));
  ASSERT_EQ(stopped.state().step, 2U);
  Recorder quiet;
  EXPECT_EQ(to_json(stopped.evaluate(data.test, quiet)), to_json(got.epochs[0].evaluations[0].test));
}

TEST(Trainer, EvaluatesAfterTheEpochsThatAreDue) {
  TrainerOptions scheme = with_feedback();
  scheme.train.epochs = 5;  // of three steps each
  Recorder all;
  const auto expected = trained(scheme, all);
  for (const auto& [epochs, every, scored] :
       std::vector<std::tuple<int, int64_t, std::vector<bool>>>{{2, 0, {false, true, false, true, true}},
                                                                {7, 0, {false, false, false, false, true}},
                                                                {7, 9, {false, false, true, false, true}}}) {
    scheme.train.evaluate_epochs = epochs;
    scheme.train.evaluate_every = every;
    Recorder got;
    expect_equal(trained(scheme, got), expected);
    ASSERT_EQ(got.epochs.size(), 5U);
    for (size_t epoch = 0; epoch < 5; ++epoch) {
      EXPECT_EQ(got.epochs[epoch].test.has_value(), scored[epoch]) << epochs << ", epoch " << epoch;
      if (got.epochs[epoch].test) {
        EXPECT_EQ(to_json(*got.epochs[epoch].test), to_json(*all.epochs[epoch].test));
      }
    }
  }
}

TEST(Trainer, EpochMetricsAddUp) {
  Recorder recorder;
  TrainerOptions scheme = options("topk:0.1", "quant:8");
  scheme.train.epochs = 2;
  Trainer trainer = trainer_of(scheme);
  ASSERT_TRUE(trainer.train({random_data(20), random_data(10)}, recorder));
  ASSERT_EQ(recorder.epochs.size(), 2U);
  for (const auto& epoch : recorder.epochs) {
    EXPECT_EQ(epoch.steps, 3);  // 8 + 8 + 4 samples
    EXPECT_EQ(epoch.test->samples, 10);
    EXPECT_NE(epoch.test->off.loss, epoch.test->on.loss);
    ASSERT_EQ(epoch.boundaries.size(), 3U);
    EXPECT_EQ(epoch.boundaries[0].name, "layer1");
    EXPECT_EQ(epoch.boundaries[0].activations.raw_bytes, 20U * 2 * 32 * 32 * 4);
    EXPECT_EQ(epoch.boundaries[2].gradients.raw_bytes, 20U * 8 * 8 * 8 * 4);
    EXPECT_EQ(epoch.boundaries[2].gradients.wire_bytes, 20U * 8 * 8 * 8 + 3 * (kFrameHeaderSize + 8));
    EXPECT_GT(epoch.total(Direction::activation).ratio(), 4);
  }
  EXPECT_EQ(recorder.epochs[0].lr, 0.01);
  EXPECT_LT(recorder.epochs[1].lr, 0.01);
}

TEST(Trainer, StopsBetweenBatchesWhenAsked) {
  struct Stopper : TrainObserver {
    void on_batch(int, const char*, int64_t, int64_t, double) override { ++batches; }
    bool should_stop() override { return batches >= 2; }
    int batches = 0;
  } stopper;
  Trainer trainer = trainer_of(options("none", "none"));
  EXPECT_FALSE(trainer.train({random_data(80), random_data(10)}, stopper));
  EXPECT_EQ(stopper.batches, 3);  // asked before the third, which it still does
  TrainObserver quiet;
  EXPECT_TRUE(trainer.train({random_data(80), random_data(10)}, quiet));
}

TEST(Trainer, ADivergedRunThrowsANumericError) {
  TrainerOptions scheme = options("none", "none");
  scheme.train.optimizer.lr = 1e20;
  Trainer trainer = trainer_of(scheme);
  TrainObserver observer;
  EXPECT_THROW(trainer.train({random_data(80), random_data(10)}, observer), NumericError);
}

TEST(LearningRate, FollowsTheSchedule) {
  const ScheduleOptions cosine{"cosine", 200};
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0.01, {.epoch = 0}), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0.01, {.epoch = 100}), 0.005);
  EXPECT_NEAR(learning_rate(cosine, 0.01, {.epoch = 200}), 0, 1e-18);
  EXPECT_DOUBLE_EQ(learning_rate({"constant", 200}, 0.01, {.epoch = 77}), 0.01);
}

TEST(LearningRate, LinearRisesAndFallsByTheStep) {
  const ScheduleOptions linear{.kind = "linear", .warmup_steps = 4};
  const auto rate = [&](int64_t step) {
    return learning_rate(linear, 0.1, {.epoch = 9, .step = step, .all_steps = 12});
  };
  EXPECT_EQ(rate(0), 0);
  EXPECT_DOUBLE_EQ(rate(1), 0.025);
  EXPECT_DOUBLE_EQ(rate(3), 0.075);
  EXPECT_DOUBLE_EQ(rate(4), 0.1);
  EXPECT_DOUBLE_EQ(rate(8), 0.05);
  EXPECT_DOUBLE_EQ(rate(11), 0.0125);
  EXPECT_EQ(rate(12), 0);
  EXPECT_EQ(rate(13), 0);
  EXPECT_DOUBLE_EQ(learning_rate({.kind = "linear"}, 0.1, {.all_steps = 12}), 0.1) << "without a warm-up";
  EXPECT_EQ(learning_rate({.kind = "linear", .warmup_steps = 12}, 0.1, {.step = 12, .all_steps = 12}), 0);
}

TEST(LoadModel, NamesTheTensorThatIsWrong) {
  const test::TempDir dir;
  Model model = make_resnet18(2, 10);
  const auto state = model.state();
  const auto expect_error = [&](const TensorFile& file, const std::string& words) {
    write_safetensors(dir / "model.safetensors", file);
    try {
      load_model(dir / "model.safetensors", model);
      ADD_FAILURE() << words;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  TensorFile file{state, {}};
  write_safetensors(dir / "model.safetensors", file);
  EXPECT_NO_THROW(load_model(dir / "model.safetensors", model));

  TensorFile missing = file;
  missing.tensors.erase(missing.tensors.begin());
  expect_error(missing, "tensor \"conv1.weight\" is missing");
  TensorFile wrong_shape = file;
  wrong_shape.tensors[0].second = torch::zeros({2, 3, 5, 5});
  expect_error(wrong_shape,
               "tensor \"conv1.weight\" is F32 of shape [2, 3, 5, 5], expected F32, F16 or BF16 of shape "
               "[2, 3, 3, 3]");
  TensorFile wrong_type = file;
  wrong_type.tensors[0].second = wrong_type.tensors[0].second.to(torch::kDouble);
  expect_error(wrong_type, "tensor \"conv1.weight\" is F64 of shape");
  TensorFile extra = file;
  extra.tensors.emplace_back("conv2.weight", torch::zeros({1}));
  expect_error(extra, "tensor \"conv2.weight\" is not part of the model (did you mean \"conv1.weight\"?)");
}

}  // namespace
}  // namespace strait
