// The parts of the trainer in a loop of a program's own.

#include <gtest/gtest.h>

#include "tests/train/token_training.h"

namespace strait {
namespace {

TEST(TrainerParts, ALoopOfAProgramsOwnGivesTheTrainersBits) {
  TrainerOptions options = test::token_options();
  options.compression.activations = {"quant:4", "none"};
  options.compression.gradients = {"topk:0.5", "ef"};
  options.train.accumulate = 2;
  const test::Trained expected = test::trained(options);

  const DataSplits data = test::token_splits();
  Placement placement(test::token_model(), options.cuts, options.pipeline,
                      std::make_shared<SingleProcessGroup>());
  PlacedExecutor executor(placement, options, nullptr);
  WeightUpdate update(placement, options);
  const StepPlan plan(data.train->size(), options.batch_size, 1, options.train.accumulate);
  ASSERT_EQ(plan.steps(), 3) << "22 samples, 5 a batch, 2 batches a step";
  StepResult sums;
  int64_t step = 0;
  for (int epoch = 0; epoch < options.train.epochs; ++epoch) {
    const auto order = epoch_order(options.seed, epoch, data.train->size());
    sums = {};
    for (int64_t number = 0; !plan.is_done(number); ++number) {
      const auto rows = std::span(order).subspan(static_cast<size_t>(number * options.batch_size));
      Batch batch = data.train->batch(rows.first(std::min<size_t>(5, rows.size())), {});
      const StepPlan::Part part = plan.part(number, 0);
      if (part.begins) update.begin();
      StepInput input = executor.input_of(batch, static_cast<uint64_t>(step));
      input.first_row = part.first_row;
      input.all_rows = part.all_rows;
      sums += executor->train(input, /*compressed=*/true);
      if (!part.ends) continue;
      update.finish(static_cast<uint64_t>(step),
                    {.epoch = epoch, .step = step, .all_steps = options.train.epochs * plan.steps()}, true);
      ++step;
    }
  }
  test::expect_equal(test::copy_of(placement.collect_model()), expected.state);
  EXPECT_EQ(mean_loss(sums), expected.epochs.at(1).train.loss);

  test::Observer observer;
  StopAgreement stop(placement.group());
  const auto scores =
      Evaluator(placement, executor, update.data_parallel(), options).score(data.test, observer, stop, 0);
  const Evaluation& test = expected.epochs.at(1).test.value();
  EXPECT_EQ(mean_loss(scores.by_mode.at(EvaluationMode::off)), test.off.loss);
  EXPECT_EQ(mean_loss(scores.by_mode.at(EvaluationMode::plain)), test.on.loss);
  EXPECT_NE(test.on.loss, test.off.loss);
}

TEST(StepPlan, PartsOfReplicasFillEveryStep) {
  for (const int replicas : {1, 2, 3}) {
    const StepPlan plan(/*samples=*/23, /*batch_size=*/6, replicas, /*accumulate=*/3);
    EXPECT_EQ(plan.steps(), 2);
    for (int replica = 0; replica < replicas; ++replica) {
      EXPECT_EQ(plan.part(0, replica).all_rows, 18);
      EXPECT_EQ(plan.part(3, replica).all_rows, 5) << "what is left";
      EXPECT_EQ(plan.part(1, replica).first_row, 6 + 6 / replicas * replica);
      EXPECT_TRUE(plan.part(0, replica).begins && !plan.part(0, replica).ends);
      EXPECT_TRUE(plan.part(2, replica).ends && !plan.part(2, replica).begins);
      EXPECT_TRUE(plan.part(3, replica).begins && plan.part(3, replica).ends);
    }
    EXPECT_TRUE(plan.is_done(4) && !plan.is_done(3));
  }
  const StepPlan short_end(/*samples=*/13, /*batch_size=*/6, /*replicas=*/2, /*accumulate=*/1);
  EXPECT_TRUE(short_end.is_done(2)) << "one sample is none for the second replica";
}

}  // namespace
}  // namespace strait
