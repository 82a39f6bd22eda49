// Integers that cross a cut beside what is trained: forward alone, exact, whatever the compression.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/error.h"
#include "strait/pipeline/executor.h"
#include "strait/transport/loopback.h"

namespace strait {
namespace {

constexpr int64_t kWords = 300;
constexpr int64_t kWidth = 4;

/// Words, of which the first stage makes vectors and the second needs the numbers again.
struct WordNetwork {
  WordNetwork() {
    torch::manual_seed(2);
    first = torch::randn({kWords, kWidth}).requires_grad_(true);
    second = torch::randn({kWords, kWidth}).requires_grad_(true);
  }
  TensorList begin(const at::Tensor& words) const { return {at::embedding(first, words).tanh(), words}; }
  at::Tensor finish(const TensorList& x) const { return x.at(0) * at::embedding(second, x.at(1)); }

  at::Tensor first;
  at::Tensor second;
};

Loss mean_of(const at::Tensor& output, const at::Tensor& targets) {
  return {(output - targets).square().mean(), 0, targets.size(0)};
}

Executor::Setup setup_of_words(const WordNetwork& network, const StageForward& first,
                               const std::string& codec) {
  Executor::Setup setup;
  setup.stage_count = 2;
  setup.batch_size = 6;
  setup.micro_batches = 2;
  setup.tensors_at_cut = {2};
  setup.boundaries.emplace_back("cut", uint16_t{0}, BoundaryLinks{make_link(codec), make_link(codec)}, 0,
                                BoundaryEndpoints::Local{});
  setup.boundaries.emplace_back("cut.words", uint16_t{1}, integer_links(kWords), 0, BoundaryEndpoints::Local{});
  setup.sample_shapes = {{5, kWidth}, {5}};
  setup.stages.try_emplace(0, first, LossFunction(), true);
  setup.stages.try_emplace(
      1, StageForward([&network](const TensorList& x) { return TensorList{network.finish(x)}; }),
      LossFunction(mean_of), false);
  return setup;
}

StepInput words() {
  torch::manual_seed(3);
  return {{torch::randint(kWords, {6, 5}, at::kLong)}, torch::randn({6, 5, kWidth}), 0, 6};
}

TEST(ExecutorOfIntegers, GivesTheUnsplitNetworksGradientsAndSendsIntegersForwardAlone) {
  const WordNetwork split;
  const WordNetwork whole;
  Loopback transport;
  Executor executor(setup_of_words(
                        split, [&](const TensorList& x) { return split.begin(x.front()); }, "none"),
                    transport);
  const StepInput batch = words();
  executor.train(batch, true);
  mean_of(whole.finish(whole.begin(batch.inputs.front())), batch.targets).mean.backward();
  EXPECT_TRUE(at::allclose(split.first.grad(), whole.first.grad(), 1e-5, 1e-7));
  EXPECT_TRUE(at::allclose(split.second.grad(), whole.second.grad(), 1e-5, 1e-7));
  const Traffic numbers = executor.boundaries()[1].activations.take_traffic();
  EXPECT_EQ(numbers.messages, 2U);
  EXPECT_EQ(numbers.wire_bytes, 2U * 64 + 6 * 5 * 2);
  EXPECT_EQ(executor.boundaries()[1].gradients.take_traffic().messages, 0U);
  EXPECT_EQ(executor.boundaries()[0].gradients.take_traffic().messages, 2U);
}

TEST(ExecutorOfIntegers, CrossAsTheyAreInEveryMode) {
  const WordNetwork network;
  Loopback transport;
  const StepInput batch = words();
  std::vector<at::Tensor> seen;
  Executor::Setup setup = setup_of_words(
      network, [&](const TensorList& x) { return network.begin(x.front()); }, "topk:0.5");
  setup.stages.erase(1);
  setup.stages.try_emplace(1, StageForward([&](const TensorList& x) {
                             seen.push_back(x.at(1));
                             return TensorList{network.finish(x)};
                           }),
                           LossFunction(mean_of), false);
  Executor executor(std::move(setup), transport);
  executor.train(batch, true);
  executor.train(batch, false);
  for (const auto mode : {EvaluationMode::off, EvaluationMode::plain, EvaluationMode::frozen}) {
    executor.evaluate(batch, mode);
  }
  ASSERT_EQ(seen.size(), 10U);
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_TRUE(at::equal(seen[i], batch.inputs.front().narrow(0, i % 2 == 0 ? 0 : 3, 3))) << i;
  }
}

TEST(ExecutorOfIntegers, AnotherTypeNamesTheBoundary) {
  const WordNetwork network;
  Loopback transport;
  Executor executor(setup_of_words(
                        network,
                        [&](const TensorList& x) {
                          TensorList outputs = network.begin(x.front());
                          outputs[1] = outputs[1].to(at::kFloat);
                          return outputs;
                        },
                        "none"),
                    transport);
  try {
    executor.train(words(), true);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "boundary cut.words: stage 0 gives Float [3, 5], expected int64 [3, 5]");
  }
}

}  // namespace
}  // namespace strait
