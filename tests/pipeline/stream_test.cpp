// The executor where the optimizer steps after every micro-batch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "strait/base/error.h"
#include "tests/pipeline/small_network.h"

namespace strait {
namespace {

using test::Fixture;
using testing::ElementsAre;

constexpr int kStreamStages = 4;

/// Lets the passes run and counts them, stage by stage.
struct CountedSteps : WeightSteps {
  void forward(int stage, const std::function<void()>& pass) override {
    pass();
    const auto at = static_cast<size_t>(stage);
    peak[at] = std::max(peak[at], ++forwards[at] - backwards[at]);
  }
  void backward(int stage, const std::function<void()>& pass) override {
    pass();
    ++backwards[static_cast<size_t>(stage)];
  }
  std::vector<int> forwards = std::vector<int>(kStreamStages);
  std::vector<int> backwards = std::vector<int>(kStreamStages);
  std::vector<int> peak = std::vector<int>(kStreamStages);  ///< under way at once
};

TEST(Stream, StagesRunAheadAcrossBatchesUntilTheDrain) {
  Fixture split;
  Executor executor = split.executor({.schedule = "pipedream", .micro_batches = 2}, {}, 10);
  CountedSteps steps;
  const StepResult first = executor.stream(Fixture::batch(10), true, steps);
  EXPECT_EQ(first.rows, 10) << "the last stage is done with it";
  EXPECT_THAT(steps.forwards, ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(steps.backwards, ElementsAre(0, 0, 1, 2));
  executor.stream(Fixture::batch(10, 2), true, steps);
  executor.stream(Fixture::batch(3, 4), true, steps);  // a short one, of a single micro-batch
  EXPECT_THAT(steps.forwards, ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(steps.backwards, ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(steps.peak, ElementsAre(4, 3, 2, 1));
  EXPECT_THROW(executor.evaluate(Fixture::batch(10), EvaluationMode::plain), InternalError) << "before a drain";
  executor.drain(steps);
  EXPECT_THAT(steps.backwards, ElementsAre(5, 5, 5, 5));
  EXPECT_EQ(split.transport.pending(), 0U);
  executor.drain(steps);
  EXPECT_THAT(steps.backwards, ElementsAre(5, 5, 5, 5)) << "nothing was left";
  EXPECT_EQ(executor.evaluate(Fixture::batch(10), EvaluationMode::plain).rows, 10);
}

/// Where the weights stay as they are, a stream adds up the gradients of every micro-batch's own mean loss.
TEST(Stream, EachMicroBatchHasTheGradientOfItsOwnMean) {
  Fixture split;
  Executor executor = split.executor({.schedule = "pipedream", .micro_batches = 3}, {}, 12);
  CountedSteps steps;
  double losses = 0;
  for (uint64_t batch = 0; batch < 3; ++batch) {
    losses += executor.stream(Fixture::batch(batch == 2 ? 7 : 12, 3 * batch), true, steps).loss_sum;
  }
  executor.drain(steps);

  test::Network whole(1);
  double expected = 0;
  for (uint64_t batch = 0; batch < 3; ++batch) {
    const StepInput input = Fixture::batch(batch == 2 ? 7 : 12, 3 * batch);
    for (int64_t row = 0; row < input.rows; row += 4) {
      const int64_t rows = std::min<int64_t>(4, input.rows - row);
      at::Tensor x = input.inputs.front().narrow(0, row, rows);
      for (size_t i = 0; i < whole.layers.size(); ++i) x = whole.layer(i, x);
      const Loss loss = test::cross_entropy(x, input.targets.narrow(0, row, rows));
      loss.mean.backward();
      expected += loss.mean.item<double>() * static_cast<double>(rows);
    }
  }
  EXPECT_EQ(losses, expected);
  const auto got = split.network.gradients();
  const auto all = whole.gradients();
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(at::equal(got[i], all[i])) << i;
}

TEST(MicroBatchQueue, NumbersOfThoseUnderWayDiffer) {
  MicroBatchQueue stream(/*rows=*/1, /*seed=*/9);
  const StepInput batch{.inputs = {}, .targets = {}, .step = 5, .rows = 3};
  std::set<int> numbers;
  for (int64_t passed = 0; passed <= Tag::kMicroBatches; passed += 3) {
    EXPECT_EQ(stream.add_steps(batch, {}), 3);
    numbers.clear();
    for (int i = 0; i < stream.count(); ++i) {
      const int number = stream.number(i);
      numbers.insert(number);
      ASSERT_EQ(stream.at(number).context.micro_batch, static_cast<uint32_t>(number));
    }
    ASSERT_EQ(numbers.size(), static_cast<size_t>(stream.count()));
    stream.keep(2);
    ASSERT_EQ(stream.count(), 2);
  }
  EXPECT_LT(*numbers.begin(), 6) << "they have come round";
  EXPECT_EQ(stream.at(stream.number(1)).context.step, 7U)
      << "the third step of a batch that begins at the fifth";
  stream.clear();
  EXPECT_EQ(stream.number(0), 0);
}

}  // namespace
}  // namespace strait
