// Gradients come back over a cut where something before it is trained, and nowhere else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/pipeline/pipeline.h"
#include "tests/pipeline/own_network.h"
#include "tests/support/errors.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::mean_square;
using test::OwnBatch;
using test::OwnNetwork;
using testing::Each;
using testing::HasSubstr;

void set_trained(torch::nn::Module& module, bool on) {
  for (auto& parameter : module.parameters()) parameter.requires_grad_(on);
}

/// Nothing below `body` is trained.
OwnNetwork half_frozen() {
  OwnNetwork network;
  set_trained(*network.stem, false);
  set_trained(*network.join, false);
  return network;
}

PipelineSetup setup_of(OwnNetwork& network, const std::string& codec, const std::string& feedback,
                       int micro_batches) {
  PipelineSetup setup;
  setup.stages = network.stages();
  setup.boundaries = test::own_boundaries(codec, feedback);
  setup.loss = mean_square;
  setup.micro_batches = micro_batches;
  return setup;
}

/// As the unsplit network.
PipelineSetup plain(OwnNetwork& network) { return setup_of(network, "none", "none", 1); }

PipelineSetup compressed(OwnNetwork& network) { return setup_of(network, "quant:8,scope=sample", "ef21", 2); }

void expect_gradients(const OwnNetwork& network, const OwnNetwork& expected) {
  const auto mine = network.parameters();
  const auto theirs = expected.parameters();
  for (size_t i = 0; i < mine.size(); ++i) {
    ASSERT_EQ(mine[i].grad().defined(), theirs[i].grad().defined()) << i;
    if (!mine[i].grad().defined()) continue;
    EXPECT_TRUE(at::equal(mine[i].grad(), theirs[i].grad())) << i;
  }
}

TEST(FrozenStages, NoGradientsComeBackToThem) {
  OwnNetwork network = half_frozen();
  Pipeline pipeline(plain(network));
  const OwnBatch batch(0);
  const StepReport report = pipeline.train(batch.inputs, batch.targets);
  // Cuts of 16 + 4, 12 and 8 floats a row, of which the last alone has gradients.
  EXPECT_EQ(report.traffic.raw_bytes, 12U * (20 + 12 + 8 + 8) * sizeof(float));
  EXPECT_EQ(report.traffic.messages, 5U);
  OwnNetwork whole = half_frozen();
  const at::Tensor loss = mean_square(whole(batch.inputs), batch.targets);
  loss.backward();
  EXPECT_EQ(report.loss, loss.item<double>());
  expect_gradients(network, whole);
}

TEST(FrozenStages, ASingleProcessSeesWhatIsUnfrozen) {
  OwnNetwork network = half_frozen();
  Pipeline pipeline(plain(network));
  const OwnBatch batch(0);
  pipeline.train(batch.inputs, batch.targets);
  for (auto& parameter : network.parameters()) parameter.mutable_grad().reset();
  set_trained(*network.stem, true);
  EXPECT_EQ(pipeline.train(batch.inputs, batch.targets).traffic.messages, 8U);
  OwnNetwork whole;
  set_trained(*whole.join, false);
  mean_square(whole(batch.inputs), batch.targets).backward();
  expect_gradients(network, whole);
}

TEST(FrozenStages, OfSeveralTensorsThoseHaveGradientsThatDependOnWhatIsTrained) {
  torch::manual_seed(4);
  const at::Tensor first = torch::randn({6, 6}).requires_grad_(true);
  const at::Tensor last = torch::randn({6, 5}).requires_grad_(true);
  const auto stem = [first](const at::Tensor& x) {
    return TensorList{at::matmul(x, first), x.gt(0).to(at::kFloat)};
  };
  const auto body = [](const at::Tensor& x, const at::Tensor& mask) { return TensorList{x.tanh(), mask * 2}; };
  const auto head = [last](const at::Tensor& x, const at::Tensor& mask) {
    EXPECT_FALSE(mask.requires_grad());
    return at::matmul(x * mask, last);
  };
  PipelineSetup setup;
  setup.stages = {{stem, {first}}, body, {head, {last}}};
  setup.boundaries = {Boundary("stem"), Boundary("body")};
  setup.loss = mean_square;
  Pipeline pipeline(std::move(setup));
  const at::Tensor x = torch::randn({4, 6});
  const at::Tensor targets = torch::randn({4, 5});
  EXPECT_EQ(pipeline.train(x, targets).traffic.messages, 4U + 2U);
  const at::Tensor of_first = first.grad().clone();
  first.mutable_grad().reset();
  const TensorList crossing = body(stem(x)[0], stem(x)[1]);
  mean_square(at::matmul(crossing[0] * crossing[1], last), targets).backward();
  EXPECT_TRUE(at::equal(of_first, first.grad()));
}

/// Its output requires a gradient in training alone.
struct DetachedInEvaluationImpl : torch::nn::Module {
  DetachedInEvaluationImpl() : layer(register_module("layer", torch::nn::Linear(6, 6))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = layer(x);
    return is_training() ? y : y.detach();
  }
  torch::nn::Linear layer;
};

TEST(FrozenStages, AStageThatHasNoGradientInEvaluationIsNotTakenForFrozen) {
  const auto stem = std::make_shared<DetachedInEvaluationImpl>();
  const auto frozen = std::make_shared<torch::nn::LinearImpl>(6, 6);
  set_trained(*frozen, false);
  PipelineSetup setup;
  setup.stages = {stem, frozen};
  setup.boundaries = {Boundary("stem")};
  setup.loss = mean_square;
  Pipeline pipeline(std::move(setup));
  pipeline.train(torch::randn({4, 6}), torch::randn({4, 6}));
  EXPECT_GT(stem->layer->weight.grad().abs().sum().item<double>(), 0);
}

constexpr uint64_t kStepUnfrozen = 2;  // in which `join` is trained as well

/// The gradients of each stage's process after four steps. Says so when join is unfrozen, unless it does not.
std::vector<std::string> train_over_ranks(std::vector<OwnNetwork>& networks, bool says_so) {
  std::vector<OwnBatch> batches;
  for (uint64_t step = 0; step < 4; ++step) batches.emplace_back(step);
  return test::Ranks(4, std::chrono::seconds(10)).run([&](Group& group) {
    OwnNetwork& network = networks[static_cast<size_t>(group.rank())];
    Pipeline pipeline(compressed(network), {&group, [](Group*) {}});
    for (uint64_t step = 0; step < batches.size(); ++step) {
      if (step == kStepUnfrozen) {
        set_trained(*network.join, true);
        if (says_so) pipeline.parameters_changed();
      }
      const StepReport report = pipeline.gather(pipeline.train(batches[step].inputs, batches[step].targets));
      EXPECT_EQ(report.traffic.messages, (step < kStepUnfrozen ? 5U : 6U) * 2) << step;
    }
  });
}

TEST(FrozenStages, SeveralProcessesGiveTheBitsOfOne) {
  OwnNetwork alone = half_frozen();
  Pipeline pipeline(compressed(alone));
  for (uint64_t step = 0; step < 4; ++step) {
    const OwnBatch batch(step);
    if (step == kStepUnfrozen) set_trained(*alone.join, true);
    pipeline.train(batch.inputs, batch.targets);
  }
  std::vector<OwnNetwork> networks;
  for (int rank = 0; rank < 4; ++rank) networks.push_back(half_frozen());
  EXPECT_THAT(train_over_ranks(networks, true), Each(""));
  const auto expected = alone.parameters();
  const std::vector<size_t> stage_of = {0, 0, 0, 0, 1, 1, 2, 2, 3};
  for (size_t i = 0; i < expected.size(); ++i) {
    const at::Tensor mine = networks[stage_of[i]].parameters()[i].grad();
    ASSERT_EQ(mine.defined(), expected[i].grad().defined()) << i;
    if (!mine.defined()) continue;
    EXPECT_TRUE(at::equal(mine, expected[i].grad())) << i;
  }
}

TEST(FrozenStages, AGradientThatWouldNotComeIsAnError) {
  std::vector<OwnNetwork> networks;
  for (int rank = 0; rank < 4; ++rank) networks.push_back(half_frozen());
  EXPECT_THAT(train_over_ranks(networks, false),
              Each(HasSubstr("stage 1 gives tensor 0 that requires a gradient, but there was nothing to train "
                             "for it at the first batch")));
}

}  // namespace
}  // namespace strait
