// Tensors of a batch that every stage is given and that cross no cut.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/pipeline/pipeline.h"
#include "tests/support/errors.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::message_of;
using testing::Each;

/// Three stages that all read a mask.
struct Masked {
  Masked() {
    torch::manual_seed(3);
    for (auto& weight : weights) weight = torch::randn({6, 6}).requires_grad_(true);
  }

  static at::Tensor stage(const at::Tensor& x, const at::Tensor& mask, const at::Tensor& weight) {
    EXPECT_FALSE(mask.requires_grad());
    return at::matmul(x, weight).tanh() * mask;
  }

  std::vector<StageModule> stages() const {
    std::vector<StageModule> all;
    for (const auto& weight : weights) {
      all.push_back(
          {[weight](const at::Tensor& x, const at::Tensor& mask) { return stage(x, mask, weight); }, {weight}});
    }
    return all;
  }

  at::Tensor operator()(at::Tensor x, const at::Tensor& mask) const {
    for (const auto& weight : weights) x = stage(x, mask, weight);
    return x;
  }

  std::array<at::Tensor, 3> weights;
};

PipelineSetup setup_of(const Masked& network, const std::string& codec, int micro_batches) {
  PipelineSetup setup;
  setup.stages = network.stages();
  const auto link = make_link(codec);
  setup.boundaries = {Boundary("first", link, link), Boundary("second", link, link)};
  setup.loss = [](const at::Tensor& output, const at::Tensor& targets) {
    return (output - targets).square().mean();
  };
  setup.micro_batches = micro_batches;
  return setup;
}

PipelineBatch batch_of(int64_t rows) {
  torch::manual_seed(5);
  PipelineBatch batch;
  batch.inputs = {torch::randn({rows, 6})};
  batch.targets = torch::randn({rows, 6});
  batch.extras = {torch::randint(0, 2, {rows, 6}).to(at::kFloat).requires_grad_(true)};
  return batch;
}

TEST(Extras, EveryStageIsGivenThemAndTheyCrossNoCut) {
  const Masked split;
  const Masked whole;
  Pipeline pipeline(setup_of(split, "none", 1));
  const PipelineBatch batch = batch_of(8);
  const at::Tensor mask = batch.extras[0].detach();
  const StepReport report = pipeline.train(batch);
  const at::Tensor loss = (whole(batch.inputs[0], mask) - batch.targets).square().mean();
  loss.backward();
  EXPECT_EQ(report.loss, loss.item<double>());
  EXPECT_EQ(report.traffic.raw_bytes, 4U * 8 * 6 * sizeof(float));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(split.weights[i].grad(), whole.weights[i].grad())) << i;
  EXPECT_FALSE(batch.extras[0].grad().defined());
  EXPECT_EQ(pipeline.evaluate(batch, EvaluationMode::off).loss, loss.item<double>());
  EXPECT_TRUE(at::equal(pipeline.predict(batch).at(0), whole(batch.inputs[0], mask)));
}

TEST(Extras, AreCutIntoMicroBatchesInEveryProcess) {
  const PipelineBatch batch = batch_of(7);
  const Masked alone;
  Pipeline pipeline(setup_of(alone, "quant:4,scope=sample", 3));
  pipeline.train(batch);
  std::vector<Masked> networks(3);
  const auto errors = test::Ranks(3, std::chrono::seconds(10)).run([&](Group& group) {
    const Masked& network = networks[static_cast<size_t>(group.rank())];
    Pipeline mine(setup_of(network, "quant:4,scope=sample", 3), {&group, [](Group*) {}});
    PipelineBatch own = batch;
    if (group.rank() > 0) own.inputs.clear();
    mine.train(own);
  });
  ASSERT_THAT(errors, Each(""));
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(at::equal(networks[i].weights[i].grad(), alone.weights[i].grad())) << i;
}

TEST(Extras, HaveTheRowsOfTheBatch) {
  const Masked network;
  Pipeline pipeline(setup_of(network, "none", 1));
  PipelineBatch batch = batch_of(8);
  batch.extras = {torch::ones({7, 6})};
  EXPECT_EQ(message_of<InputError>([&] { pipeline.train(batch); }),
            "the extras of a batch of 8 rows: expected a tensor of shape [8, ...], found [7, 6]");
}

}  // namespace
}  // namespace strait
