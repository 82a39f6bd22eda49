// Training in a subspace: what crosses, and that nothing is lost by it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/error.h"
#include "strait/checkpoint/model_file.h"
#include "strait/models/bottleneck.h"
#include "strait/models/gpt2.h"
#include "tests/support/temp_dir.h"
#include "tests/train/token_training.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_equal;
using test::Trained;

constexpr int64_t kRank = 3;

Gpt2Options options_of_network() {
  return {.width = 8,
          .layers = 2,
          .heads = 2,
          .context = test::kBlock,
          .vocab = test::kVocabulary,
          .dropout = 0.1,
          .subspace = kRank};
}

Model narrow_network(uint64_t seed = 6) {
  torch::manual_seed(seed);
  return make_gpt2(options_of_network(), test::kBlock);
}

TrainerOptions options_with(std::vector<std::string> cuts) {
  TrainerOptions options = test::token_options();
  options.cuts = std::move(cuts);
  return options;
}

Trained train_network(const TrainerOptions& options, Model model = narrow_network()) {
  Trainer trainer(std::move(model), options);
  test::Observer observer;
  EXPECT_TRUE(trainer.train(test::token_splits(), observer));
  return {copy_of(trainer.collect_model()), observer.epochs};
}

TEST(SubspaceTraining, SendsTheCoordinatesAndTwoBytesATokenForward) {
  const auto epoch = train_network(options_with({"embed", "h.0"})).epochs.back();
  ASSERT_EQ(epoch.boundaries.size(), 4U);
  const char* names[] = {"embed", "embed.input", "h.0", "h.0.input"};
  constexpr uint64_t kTokens = 22 * test::kBlock;  // in 5 messages
  for (size_t i = 0; i < 4; ++i) {
    const auto& boundary = epoch.boundaries[i];
    const bool is_input = i % 2 == 1;
    EXPECT_EQ(boundary.name, names[i]);
    EXPECT_EQ(boundary.activations.messages, 5U);
    EXPECT_EQ(boundary.activations.wire_bytes, 5 * 64 + kTokens * (is_input ? 2 : 4 * kRank));
    EXPECT_EQ(boundary.activations.raw_bytes, kTokens * (is_input ? 2 : 4 * kRank));
    EXPECT_EQ(boundary.gradients.messages, is_input ? 0U : 5U);
    EXPECT_EQ(boundary.gradients.wire_bytes, is_input ? 0 : 5 * 64 + kTokens * 4 * kRank);
  }
}

TEST(SubspaceTraining, IsTheSameWhateverTheCuts) {
  const Trained expected = train_network(options_with({}));
  EXPECT_LT(expected.epochs[1].train.loss, expected.epochs[0].train.loss);
  for (const auto& cuts : std::vector<std::vector<std::string>>{{"embed"}, {"embed", "h.0", "h.1"}}) {
    const Trained found = train_network(options_with(cuts));
    expect_equal(found.state, expected.state);
    EXPECT_EQ(found.epochs[1].test->off.loss, expected.epochs[1].test->off.loss);
  }
}

TEST(SubspaceTraining, OperatorsAndABottleneckActOnTheCoordinatesAlone) {
  TrainerOptions options = options_with({"embed", "h.0"});
  options.compression.activations = {"quant:2,scope=sample", "ef21"};
  options.compression.gradients = {"topk:0.2", "ef"};
  options.pipeline.micro_batches = 2;
  Model model = narrow_network();
  add_bottlenecks(model, options.cuts, 2);
  const Trained found = train_network(options, std::move(model));
  const auto& boundaries = found.epochs.back().boundaries;
  ASSERT_EQ(boundaries.size(), 4U);
  constexpr uint64_t kTokens = 22 * test::kBlock;
  // Two channels, of 2 bits each, with the two ends of the range for a sample; in 9 messages.
  EXPECT_EQ(boundaries[2].activations.wire_bytes, 9 * 64 + 22 * (8 + test::kBlock * 2 * 2 / 8));
  EXPECT_EQ(boundaries[3].activations.wire_bytes, 9 * 64 + kTokens * 2);
  EXPECT_EQ(boundaries[3].gradients.messages, 0U);
  EXPECT_NE(found.epochs.back().test->on.loss, found.epochs.back().test->off.loss);
  EXPECT_LT(found.epochs[1].train.loss, found.epochs[0].train.loss);
}

TEST(SubspaceTraining, StepsOfEveryMicroBatchNeedNoTie) {
  TrainerOptions options = options_with({"embed", "h.0"});
  options.pipeline.schedule = "pipedream";
  options.pipeline.micro_batches = 5;
  const auto epochs = train_network(options).epochs;
  EXPECT_LT(epochs[1].train.loss, epochs[0].train.loss);
}

TEST(SubspaceTraining, AFileBringsItsSubspaceAlong) {
  const test::TempDir dir;
  const auto path = dir / "model.safetensors";
  const Model saved = narrow_network();
  save_model(path, saved);
  Model other = narrow_network(7);
  torch::manual_seed(1);
  const at::Tensor tokens = torch::randint(test::kVocabulary, {3, test::kBlock}, at::kLong);
  const auto logits = [&](Model& model) {
    const torch::NoGradGuard no_grad;
    model.train(false);
    return model.forward(tokens, 0, model.layers.size());
  };
  logits(other);  // with tables of its own
  load_model(path, other);
  Model expected = saved;
  EXPECT_TRUE(at::equal(logits(other), logits(expected)));
}

TEST(SubspaceTraining, AFileOfTheWholeNetworkIsRefused) {
  const test::TempDir dir;
  const auto path = dir / "model.safetensors";
  Gpt2Options whole = options_of_network();
  whole.subspace = 0;
  save_model(path, make_gpt2(whole, test::kBlock));
  Model model = narrow_network();
  try {
    load_initial(path, model);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                testing::EndsWith("tensor \"wte.weight\" is F32 of shape [11, 8], expected F32, F16 or "
                                  "BF16 of shape [11, 3]"));
  }
}

}  // namespace
}  // namespace strait
