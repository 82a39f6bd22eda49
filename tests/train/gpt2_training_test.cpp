// Training GPT-2: the same bits in one process, in several, and with recomputed blocks; in a subspace and with
// a bottleneck too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/models/bottleneck.h"
#include "strait/models/layer.h"
#include "tests/models/tiny_gpt2.h"
#include "tests/train/fixed_dataset.h"
#include "tests/train/replicas.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_equal;
using test::State;

constexpr int64_t kBlock = 9;

/// Scores the last position only: which token follows the sample.
class LastPosition : public Layer {
 public:
  at::Tensor forward(const at::Tensor& x) override { return x.select(1, x.size(1) - 1); }
};

/// What is special of a network; 0: nothing.
struct Narrow {
  int64_t subspace = 0;
  int64_t bottleneck = 0;
};

const std::vector<std::string> kCuts = {"embed", "h.0", "h.1"};

Model network(bool recompute, Narrow narrow = {}) {
  Gpt2Options options = test::tiny_gpt2();
  options.layers = 3;
  options.dropout = 0.2;
  options.recompute = recompute;
  options.subspace = narrow.subspace;
  torch::manual_seed(11);
  Model model = make_gpt2(options, kBlock);
  if (narrow.bottleneck > 0) add_bottlenecks(model, kCuts, narrow.bottleneck);
  model.layers.push_back({"last", "", std::make_shared<LastPosition>()});
  return model;
}

DataSplits data() {
  torch::manual_seed(12);
  const auto set = [](int64_t samples) {
    return std::make_shared<test::FixedDataset>(test::random_tokens(samples, kBlock),
                                                torch::randint(test::tiny_gpt2().vocab, {samples}));
  };
  return {set(20), set(4)};
}

/// Three steps of 8, 8 and 4 samples, in two micro-batches.
TrainerOptions options() {
  TrainerOptions options;
  options.seed = 3;
  options.batch_size = 8;
  options.train.epochs = 1;
  options.train.device = "cpu";
  options.train.clip_norm = 0.3;
  options.train.optimizer.lr = 0.5;
  options.pipeline.micro_batches = 2;
  options.compression.activations = {"quant:8", "none"};
  options.compression.gradients = {"topk:0.5", "ef21"};
  options.cuts = kCuts;
  return options;
}

State trained(bool recompute, Narrow narrow = {}) {
  Trainer trainer(network(recompute, narrow), options());
  TrainObserver observer;
  trainer.train(data(), observer);
  EXPECT_EQ(trainer.state().step, 3U);
  return copy_of(trainer.collect_model());
}

State trained_by_ranks(bool recompute, Narrow narrow = {}) {
  const auto make = [&] { return network(recompute, narrow); };
  return test::train_replicas(4, make, options(), data()).replicas[0];
}

TEST(Gpt2Training, RanksAndRecomputingGiveTheBitsOfOneProcess) {
  const State before = copy_of(network(false));
  const State expected = trained(false);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_FALSE(at::equal(before[i].second, expected[i].second)) << expected[i].first;
  }
  EXPECT_EQ(expected.back().first, "lm_head.weight");
  EXPECT_TRUE(at::equal(expected.back().second, expected.front().second));
  expect_equal(trained(true), expected);
  expect_equal(trained_by_ranks(false), expected);
  expect_equal(trained_by_ranks(true), expected);
}

TEST(Gpt2Training, RanksGiveTheBitsOfOneProcessInASubspaceAndWithABottleneck) {
  for (const Narrow narrow : {Narrow{.subspace = 5}, {.bottleneck = 5}, {.subspace = 5, .bottleneck = 3}}) {
    const State before = copy_of(network(true, narrow));
    const State expected = trained(true, narrow);
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& [name, value] = expected[i];
      EXPECT_EQ(at::equal(before[i].second, value), name.ends_with("subspace.seed")) << name;
    }
    expect_equal(trained_by_ranks(true, narrow), expected);
  }
}

}  // namespace
}  // namespace strait
