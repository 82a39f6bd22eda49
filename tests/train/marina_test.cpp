// Replicas whose messages need gradients at the weights of the step before, here as threads over real
// connections, against a plain loop and against plain training.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "strait/base/random.h"
#include "strait/base/rng_scope.h"
#include "strait/models/dropout.h"
#include "strait/models/layer.h"
#include "tests/train/fixed_dataset.h"
#include "tests/train/replicas.h"

namespace strait {
namespace {

using test::expect_close;
using test::expect_equal;
using test::FixedDataset;
using test::over_two_ranks;
using test::State;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kSeed = 3;
constexpr int64_t kSize = 6;

/// A linear layer with batch normalisation and dropout behind it where they are wanted.
class Block : public Layer {
 public:
  Block(uint64_t place, bool normed, bool drops)
      : linear_(register_module("linear", torch::nn::Linear(kSize, kSize))), place_(place), drops_(drops) {
    if (normed) norm_ = register_module("norm", torch::nn::BatchNorm1d(kSize));
  }
  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor y = linear_(x);
    if (!norm_.is_empty()) y = norm_(y);
    y = y.tanh();
    return drops_ && is_training() ? dropout(y, 0.2, place_) : y;
  }

 private:
  torch::nn::Linear linear_;
  torch::nn::BatchNorm1d norm_{nullptr};
  uint64_t place_;
  bool drops_;
};

/// Four layers, the same weights at every call.
Model block_model(bool normed, bool drops) {
  torch::manual_seed(21);
  Model model;
  model.sample_shape = {kSize};
  for (const char* name : {"a", "b", "c", "d"})
    model.layers.push_back({name, name, std::make_shared<Block>(model.layers.size(), normed, drops)});
  return model;
}

constexpr int64_t kSamples = 22;

DataSplits block_data() {
  torch::manual_seed(22);
  const auto set = [] {
    return std::make_shared<FixedDataset>(torch::randn({kSamples, kSize}), torch::randint(kSize, {kSamples}));
  };
  return {set(), set()};
}

/// Two replicas, four stages each; batches of 6, the last of 4.
TrainerOptions block_options(const LinkOptions& replicas) {
  TrainerOptions options;
  options.seed = kSeed;
  options.batch_size = 6;
  options.train.epochs = 2;
  options.train.device = "cpu";
  options.train.optimizer = {.lr = 0.2, .momentum = 0, .weight_decay = 0};
  options.train.schedule = {.kind = "constant"};
  options.pipeline.replicas = 2;
  options.compression.replicas = replicas;
  options.cuts = {"a", "b", "c"};
  return options;
}

/// What the first replica has at the end.
struct Result {
  State state;
  std::vector<EpochMetrics> epochs;
};

Result train_blocks(int ranks, const TrainerOptions& options, bool normed, bool drops) {
  const auto model = [&] { return block_model(normed, drops); };
  auto [replicas, epochs] = test::train_replicas(ranks, model, options, block_data());
  return {std::move(replicas[0]), std::move(epochs)};
}

/// docs/operators.md, "Feedback".
bool coin_says_full(uint64_t step, float p) {
  return CounterRandom(make_key(0x6d6172696e61, kSeed, step)).uniform() < p;
}

/// A batch as a replica has it.
struct Share {
  at::Tensor inputs;
  at::Tensor targets;
  size_t first_row = 0;  ///< among the rows of the step
};

/// The shares of each replica in the batches of each step.
std::vector<std::vector<std::vector<Share>>> shares_of(const TrainerOptions& options, const Dataset& data) {
  std::vector<std::vector<std::vector<Share>>> steps;
  for (int epoch = 0; epoch < options.train.epochs; ++epoch) {
    const auto order = epoch_order(kSeed, epoch, kSamples);
    int64_t batch = 0;
    for (int64_t first = 0; first < kSamples; first += options.batch_size, ++batch) {
      if (batch % options.train.accumulate == 0) steps.emplace_back(2);
      const int64_t rows = std::min(options.batch_size, kSamples - first);
      for (int replica = 0; replica < 2; ++replica) {
        const int64_t own = replica == 0 ? (rows + 1) / 2 : rows / 2;
        const int64_t begin = replica == 0 ? 0 : (rows + 1) / 2;
        const auto from = order.begin() + first + begin;
        const std::vector<int64_t> ids(from, from + own);
        const Batch samples = data.batch(ids, {});
        steps.back()[static_cast<size_t>(replica)].push_back(
            {samples.inputs, samples.targets,
             static_cast<size_t>(batch % options.train.accumulate * options.batch_size + begin)});
      }
    }
  }
  return steps;
}

/// The gradients of each layer, joined, of a replica's share in the mean loss of the step.
std::vector<at::Tensor> gradients_at(const Model& model, const std::vector<at::Tensor>& weights,
                                     const std::vector<Share>& shares, int64_t all_rows, uint64_t step) {
  const auto parameters = model.parameters();
  for (size_t i = 0; i < weights.size(); ++i) {
    parameters[i].variable_data().copy_(weights[i]);
    parameters[i].mutable_grad() = at::zeros_like(weights[i]);
  }
  for (const Share& share : shares) {
    const RngScope draws({kSeed, step, share.first_row});
    const at::Tensor output = model.forward(share.inputs, 0, model.layers.size());
    const at::Tensor loss = torch::nn::functional::cross_entropy(output, share.targets);
    loss.mul(static_cast<double>(share.targets.size(0)) / static_cast<double>(all_rows)).backward();
  }
  std::vector<at::Tensor> joined;
  for (const auto& layer : model.layers) {
    std::vector<at::Tensor> flat;
    for (const auto& parameter : layer.layer->parameters()) flat.push_back(parameter.grad().reshape({1, -1}));
    joined.push_back(at::cat(flat, 1));
  }
  return joined;
}

/// MARINA's algorithm 1 in one loop, with stochastic gradient descent. Without batch normalisation, which makes
/// much of a rounding where a batch has three rows.
std::vector<at::Tensor> train_plainly(const TrainerOptions& options, const std::string& codec_spec, float p) {
  Model model = block_model(/*normed=*/false, /*drops=*/true);
  model.train(true);
  const auto codec = make_codec(codec_spec);
  const auto steps = shares_of(options, *block_data().train);
  std::vector<at::Tensor> weights;
  for (const auto& parameter : model.parameters()) weights.push_back(parameter.detach().clone());
  std::vector<at::Tensor> before;
  std::vector<std::vector<at::Tensor>> estimates(2);  // of the replicas, by layer
  for (uint64_t step = 0; step < steps.size(); ++step) {
    const auto& replicas = steps[step];
    int64_t all_rows = 0;
    for (const auto& shares : replicas) {
      for (const Share& share : shares) all_rows += share.targets.size(0);
    }
    for (size_t replica = 0; replica < 2; ++replica) {
      const auto now = gradients_at(model, weights, replicas[replica], all_rows, step);
      if (step == 0 || coin_says_full(step, p)) {
        estimates[replica] = now;
        continue;
      }
      const auto then = gradients_at(model, before, replicas[replica], all_rows, step);
      for (size_t layer = 0; layer < now.size(); ++layer) {
        estimates[replica][layer] = estimates[replica][layer] +
                                    codec->reconstruct(now[layer] - then[layer], {.seed = kSeed, .step = step});
      }
    }
    before = weights;
    size_t parameter = 0;
    for (size_t layer = 0; layer < model.layers.size(); ++layer) {
      const at::Tensor sum = (estimates[0][layer] + estimates[1][layer]).view({-1});
      int64_t begin = 0;
      for (const auto& own : model.layers[layer].layer->parameters()) {
        const at::Tensor gradient = sum.narrow(0, begin, own.numel()).view(own.sizes());
        weights[parameter] = weights[parameter] - options.train.optimizer.lr * gradient;
        begin += own.numel();
        ++parameter;
      }
    }
  }
  return weights;
}

TEST(MarinaTraining, FollowsAPlainLoop) {
  for (const char* codec : {"topk:0.3,scope=tensor", "none"}) {
    for (const int accumulate : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, accumulate {}", codec, accumulate));
      TrainerOptions options = block_options({codec, "marina:0.3"});
      options.train.epochs = 3;
      options.train.accumulate = accumulate;
      const auto expected = train_plainly(options, codec, 0.3F);
      const Result got = train_blocks(2, options, false, true);
      ASSERT_EQ(got.state.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(at::allclose(got.state[i].second, expected[i], 1e-4, 1e-6)) << got.state[i].first;
      }
    }
  }
}

/// Without compression the sum telescopes where every step has all samples and no draws.
TEST(MarinaTraining, WithoutCompressionAndWithWholeBatchesItIsPlainTraining) {
  TrainerOptions plain = block_options({});
  plain.batch_size = kSamples;
  plain.train.epochs = 10;
  TrainerOptions marina = plain;
  marina.compression.replicas = {"none", "marina:0.01"};
  expect_close(train_blocks(2, marina, false, false).state, train_blocks(2, plain, false, false).state);
}

TEST(MarinaTraining, WithACoinThatIsAlwaysThrownItIsPlainTraining) {
  const Result plain = train_blocks(2, block_options({}), true, true);
  const Result marina = train_blocks(2, block_options({"topk:0.1", "marina:1"}), true, true);
  expect_equal(marina.state, plain.state);
  EXPECT_EQ(marina.epochs.back().train.loss, plain.epochs.back().train.loss);
}

const BoundaryTraffic& boundary_of(const EpochMetrics& epoch, const std::string& boundary) {
  return *std::ranges::find(epoch.boundaries, boundary, &BoundaryTraffic::name);
}

uint64_t messages_at(const EpochMetrics& epoch, const std::string& boundary) {
  return boundary_of(epoch, boundary).activations.messages;
}

/// With weights that never change both passes are the same, so that nothing but what the first one leaves
/// behind could tell such a training from a plain one.
TEST(MarinaTraining, ThePassAtTheWeightsBeforeLeavesNothingBehind) {
  constexpr float kShare = 0.3F;
  TrainerOptions options = block_options({});
  options.train.optimizer.lr = 0;
  options.compression.diagnostics = 1;
  const Result plain = train_blocks(2, options, true, true);
  options.compression.replicas = {"topk:0.1", fmt::format("marina:{}", kShare)};
  const Result marina = train_blocks(2, options, true, true);
  expect_equal(marina.state, plain.state);
  uint64_t step = 0;
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(marina.epochs[epoch].train.loss, plain.epochs[epoch].train.loss);
    EXPECT_EQ(marina.epochs[epoch].test->on.loss, plain.epochs[epoch].test->on.loss);
    uint64_t twice = 0;
    for (int i = 0; i < 4; ++i, ++step) twice += step > 0 && !coin_says_full(step, kShare) ? 1 : 0;
    EXPECT_EQ(messages_at(plain.epochs[epoch], "b"), 8U);
    EXPECT_EQ(messages_at(marina.epochs[epoch], "b"), 8 + 2 * twice) << "both passes cross";
    const auto measured = [&](const Result& result) {
      return boundary_of(result.epochs[epoch], "b").activation_diagnostics.value();
    };
    EXPECT_EQ(measured(marina).messages, measured(plain).messages);
    EXPECT_EQ(measured(marina).cosine, measured(plain).cosine);
  }
}

TrainerOptions with_compressed_boundaries(const LinkOptions& replicas) {
  TrainerOptions options = block_options(replicas);
  options.compression.activations = {"quant:8,rounding=stochastic", "none"};
  options.compression.gradients = {"topk:0.5", "none"};
  options.train.optimizer.momentum = 0.9;
  return options;
}

const LinkOptions kMarina{"qsgd:4", "marina:0.3"};

TEST(MarinaTraining, GivesTheSameBitsInMoreProcesses) {
  const TrainerOptions options = with_compressed_boundaries(kMarina);
  const Result expected = train_blocks(2, options, true, true);
  expect_equal(train_blocks(4, over_two_ranks(options), true, true).state, expected.state);
  expect_equal(train_blocks(8, options, true, true).state, expected.state);
}

TEST(MarinaTraining, EpochsWithoutCompressionComeBefore) {
  TrainerOptions plain = with_compressed_boundaries({"topk:0.1", "none"});
  plain.compression.start_epoch = 2;
  TrainerOptions marina = with_compressed_boundaries(kMarina);
  marina.compression.start_epoch = 2;
  const State never = train_blocks(2, plain, true, true).state;
  expect_equal(train_blocks(2, marina, true, true).state, never);
  marina.compression.start_epoch = 1;
  EXPECT_FALSE(at::equal(train_blocks(2, marina, true, true).state[0].second, never[0].second));
}

Model whole_block_model() { return block_model(/*normed=*/true, /*drops=*/true); }

class MarinaResume : public test::ResumeOnRanks {
 protected:
  MarinaResume() : ResumeOnRanks(whole_block_model, block_data()) {}

  State state_after(int ranks, const TrainerOptions& options, bool warm_start = false) {
    State state;
    EXPECT_THAT(go_on(ranks, options, state, warm_start), Each(IsEmpty()));
    return state;
  }
};

TEST_F(MarinaResume, GivesTheSameBitsAlsoInOtherNumbersOfRanks) {
  const TrainerOptions options = with_compressed_boundaries(kMarina);
  const Result expected = train_blocks(2, options, true, true);
  stop_after(3, 2, options);
  expect_equal(state_after(2, options), expected.state);
  std::filesystem::remove_all(dir_ / "checkpoint");
  stop_after(3, 4, over_two_ranks(options));
  expect_equal(state_after(2, options), expected.state);
}

TEST_F(MarinaResume, AWarmStartTakesOverNoState) {
  const TrainerOptions options = with_compressed_boundaries(kMarina);
  stop_after(3, 2, options);
  const State warm = state_after(2, options, /*warm_start=*/true);
  EXPECT_FALSE(at::equal(warm[0].second, train_blocks(2, options, true, true).state[0].second))
      << "the first message goes in full again";
}

TEST(MarinaTraining, StateAtABoundaryIsRefused) {
  for (const LinkOptions& link : {LinkOptions{"topk:0.1", "ef21"}, LinkOptions{"lowrank:2,warm=yes", "none"}}) {
    TrainerOptions options = block_options(kMarina);
    options.compression.gradients = link;
    const auto errors = test::on_ranks(2, whole_block_model, options, [](Trainer&, Group&) {});
    EXPECT_THAT(errors,
                Each(HasSubstr("compression.replicas.feedback: \"marina:0.3\" takes every batch over the "
                               "boundaries twice")));
  }
}

}  // namespace
}  // namespace strait
