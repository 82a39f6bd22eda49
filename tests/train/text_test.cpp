// Training and scoring a language model: AdamW, the linear schedule, several batches per step, bfloat16.

#include <gmock/gmock.h>

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/data/kinds.h"
#include "strait/models/bfloat16.h"
#include "strait/train/loss.h"
#include "strait/train/precision.h"
#include "tests/models/tiny_gpt2.h"
#include "tests/support/temp_dir.h"
#include "tests/train/token_training.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_equal;
using test::Observer;
using test::token_model;
using test::token_options;
using test::token_splits;
using test::Trained;
using test::trained;
using testing::HasSubstr;

TEST(Text, SamplesAreBlocksAndScoresAreOfTokens) {
  const auto epochs = trained(token_options()).epochs;
  ASSERT_EQ(epochs.size(), 2U);
  for (const auto& epoch : epochs) {
    EXPECT_EQ(epoch.steps, 5);
    EXPECT_EQ(epoch.test->samples, 7);
    EXPECT_DOUBLE_EQ(epoch.test->off.at(kPerplexity), std::exp(epoch.test->off.loss));
    EXPECT_NEAR(epoch.samples_per_second * epoch.seconds, 22, 1e-6);
    EXPECT_NEAR(epoch.tokens_per_second.value() * epoch.seconds, 22 * (test::kBlock - 1), 1e-6);
    const double right = epoch.test->on.at(kAccuracy) / 100 * 7 * (test::kBlock - 1);
    EXPECT_NEAR(right, std::round(right), 1e-6) << "predictions are whole";
  }
  EXPECT_LT(epochs[1].train.loss, epochs[0].train.loss);
}

TEST(Text, PicturesHaveNoPerplexity) {
  Trainer trainer(test::tied_model(), [] {
    TrainerOptions options;
    options.train.epochs = 1;
    options.train.device = "cpu";
    return options;
  }());
  Observer observer;
  ASSERT_TRUE(trainer.train(test::tied_data(), observer));
  EXPECT_THAT(observer.epochs[0].test->off.metrics, testing::ElementsAre(testing::Key("accuracy")));
  EXPECT_EQ(observer.epochs[0].tokens_per_second, std::nullopt);
}

TEST(Task, AProgramMayHandInItsOwn) {
  TrainerOptions options;
  options.train.epochs = 1;
  options.train.device = "cpu";
  options.train.optimizer.lr = 1e-30;  // the weights stay as they are
  Observer observer;
  Trainer(test::tied_model(), options).train(test::tied_data(), observer);
  options.task.loss = [](const at::Tensor& output, const at::Tensor& targets) {
    const Loss loss = classification_loss(output, targets);
    return Loss{loss.mean * 2, loss.correct, loss.count};
  };
  options.task.metrics = [](const StepResult& sums) {
    return std::map<std::string, double>{{"right", static_cast<double>(sums.correct)}};
  };
  Trainer(test::tied_model(), options).train(test::tied_data(), observer);
  const auto& [usual, own] = std::tie(observer.epochs.at(0), observer.epochs.at(1));
  EXPECT_EQ(own.train.loss, 2 * usual.train.loss);
  EXPECT_EQ(own.test->off.loss, 2 * usual.test->off.loss);
  const auto right = usual.test->off.at(kAccuracy) / 100 * static_cast<double>(usual.test->samples);
  EXPECT_NEAR(own.test->off.metrics.at("right"), right, 1e-9);
  EXPECT_EQ(judge_of(own.test->off), nullptr);
}

TEST(Trainer, TakesAnOptimizerAndAScheduleOfAProgramsOwn) {
  TrainerOptions options = token_options();
  options.train.schedule = {.kind = "constant"};
  options.train.optimizer.lr = 0.01;
  const Trained expected = trained(options);
  options.train.optimizer.lr = 0.02;
  options.schedule = [](const SchedulePoint& at) { return at.all_steps == 10 ? 0.5 : 0; };
  int made = 0;
  options.optimizer = [&](const std::vector<at::Tensor>& parameters) {
    ++made;
    return make_optimizer(options.train.optimizer, parameters);
  };
  const Trained own = trained(options);
  EXPECT_EQ(made, 3) << "one for each stage";
  expect_equal(own.state, expected.state);
  EXPECT_EQ(own.epochs.at(0).lr, 0.01);
}

TEST(Task, EveryKindOfDataNamesOne) {
  for (const auto& kind : data_kinds()) {
    if (kind.task_of_files != nullptr) continue;
    EXPECT_NO_THROW(find_task(kind.task)) << kind.name;
  }
  EXPECT_EQ(find_task(data_kind("text").task).throughput, Throughput::tokens);
  EXPECT_THROW(find_task("clasification"), InputError);
  for (const auto& task : all_tasks()) {
    const Score score = score_of({.loss_sum = 1, .correct = 1, .count = 2, .rows = 1}, task);
    EXPECT_NO_THROW(score.at(task.judged_by));
    const Metric* judge = judge_of(score);
    EXPECT_EQ(judge == nullptr ? kLoss.name : judge->name, task.judged_by.name);
  }
}

TEST(Schedule, TheRateOfAnEpochIsThatOfItsFirstStep) {
  const auto epochs = trained(token_options()).epochs;  // 10 steps, of which 3 rise
  EXPECT_EQ(epochs[0].lr, 0);
  EXPECT_DOUBLE_EQ(epochs[1].lr, 0.02 * 5 / 7);
  TrainerOptions four = token_options();
  four.train.accumulate = 4;  // 2 steps per epoch
  EXPECT_DOUBLE_EQ(trained(four).epochs[1].lr, 0.02 * 2 / 3);
}

TEST(Schedule, AWarmUpBeyondTheTrainingIsNamed) {
  TrainerOptions options = token_options();
  options.train.schedule.warmup_steps = 11;
  Trainer trainer(token_model(), options);
  Observer observer;
  try {
    trainer.train(token_splits(), observer);
    ADD_FAILURE() << "trained";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "train.schedule.warmup_steps: expected at most 10, the steps of the training, found 11");
  }
}

TEST(Accumulate, GivesTheBitsOfAsManyMicroBatches) {
  TrainerOptions whole = token_options();
  whole.batch_size = 20;
  whole.pipeline.micro_batches = 4;
  TrainerOptions parts = token_options();
  parts.train.accumulate = 4;
  // 20 + 20 + 7 samples: the last step has two batches, of 5 and of 2.
  const Trained expected = trained(whole, true, 47);
  const Trained got = trained(parts, true, 47);
  expect_equal(got.state, expected.state);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(got.epochs[i].steps, 3);
    EXPECT_EQ(got.epochs[i].train.loss, expected.epochs[i].train.loss);
    EXPECT_EQ(got.epochs[i].lr, expected.epochs[i].lr);
  }
}

TEST(Accumulate, StopsAndCheckpointsFallOnTheEndOfAStep) {
  TrainerOptions options = token_options();
  options.train.accumulate = 2;  // steps of 10, 10 and 2 samples
  options.compression.gradients = {"topk:0.5", "ef21"};
  const Trained expected = trained(options, true);
  for (const int stop_after : {0, 1, 2, 3, 4}) {
    const test::TempDir dir;
    Trainer first(token_model(true), options);
    first.keep_checkpoints(CheckpointWriter(dir.path(), 0, {}), "");
    Observer stopper(stop_after);
    EXPECT_FALSE(first.train(token_splits(), stopper));
    const int64_t batches = std::min(stop_after / 2 * 2 + 2, 5);
    EXPECT_EQ(first.state().batches, batches) << "asked before batch " << stop_after;
    EXPECT_EQ(first.state().step, static_cast<uint64_t>((batches + 1) / 2));

    const auto entries = CheckpointFolder(dir.path(), {}).entries();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0], (CheckpointFolder::Entry{0, batches}));
    Trainer second(token_model(true), options);
    second.resume(Checkpoint({dir / entries[0].name()}));
    Observer observer;
    EXPECT_TRUE(second.train(token_splits(), observer));
    expect_equal(copy_of(second.collect_model()), expected.state);
    ASSERT_EQ(observer.epochs.size(), 2U);
    EXPECT_EQ(observer.epochs[0].train.loss, expected.epochs[0].train.loss);
    EXPECT_EQ(observer.epochs[0].steps, 3);
  }
}

TEST(Bfloat16, IsNearFloat32AndCrossesBoundariesAsFloat32) {
  TrainerOptions options = token_options();
  const Trained full = trained(options);
  options.train.precision = "bf16";
  const Trained half = trained(options);
  EXPECT_EQ(half.epochs[1].boundaries[0].activations.raw_bytes,
            full.epochs[1].boundaries[0].activations.raw_bytes);
  EXPECT_NE(half.epochs[1].test->off.loss, full.epochs[1].test->off.loss);
  EXPECT_NEAR(half.epochs[1].test->off.loss, full.epochs[1].test->off.loss, 0.05);
  for (const auto& [name, value] : half.state) EXPECT_EQ(value.scalar_type(), at::kFloat) << name;
  expect_equal(trained(token_options()).state, full.state);  // nothing of it stays on
}

TEST(Bfloat16, RecomputedBlocksOfGpt2GiveTheSameBits) {
  const auto trained_gpt2 = [](const std::string& precision, bool recompute) {
    Gpt2Options network = test::tiny_gpt2();
    network.dropout = 0.2;
    network.recompute = recompute;
    torch::manual_seed(11);
    TrainerOptions options = token_options();
    options.train.precision = precision;
    options.cuts = {"h.0"};
    Trainer trainer(make_gpt2(network, test::kBlock), options);
    Observer observer;
    EXPECT_TRUE(trainer.train(token_splits(), observer));
    return Trained{copy_of(trainer.collect_model()), observer.epochs};
  };
  const Trained full = trained_gpt2("fp32", false);
  const Trained half = trained_gpt2("bf16", false);
  expect_equal(trained_gpt2("bf16", true).state, half.state);
  EXPECT_NE(half.epochs[1].test->off.loss, full.epochs[1].test->off.loss);
  EXPECT_NEAR(half.epochs[1].test->off.loss, full.epochs[1].test->off.loss, 0.05);
}

TEST(Bfloat16, AScopeNestsAndEnds) {
  ASSERT_TRUE(has_bfloat16(at::kCPU));
  const at::Tensor square = torch::ones({4, 4});
  const auto type = [&] { return at::matmul(square, square).scalar_type(); };
  EXPECT_FALSE(in_bfloat16(at::kCPU));
  {
    const Bfloat16Scope outer(at::kCPU);
    {
      const Bfloat16Scope inner(at::kCPU);
      EXPECT_EQ(type(), at::kBFloat16);
    }
    EXPECT_EQ(type(), at::kBFloat16);
    EXPECT_TRUE(in_bfloat16(at::kCPU));
  }
  EXPECT_EQ(type(), at::kFloat);
}

TEST(Bfloat16, ADeviceWithoutItIsNamed) {
  EXPECT_NO_THROW(check_precision("fp32", at::Device("meta")));
  EXPECT_NO_THROW(check_precision("bf16", at::kCPU));
  try {
    check_precision("bf16", at::Device("meta"));
    ADD_FAILURE() << "meta has it";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("train.precision: expected \"fp32\", because the device meta does not have "
                          "bfloat16, found \"bf16\""));
  }
}

}  // namespace
}  // namespace strait
