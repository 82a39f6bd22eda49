#include "strait/train/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/error.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

namespace F = torch::nn::functional;

/// The definition: every position but the last of its block against the token that follows.
at::Tensor shifted_cross_entropy(const at::Tensor& logits, const at::Tensor& tokens) {
  const int64_t each = tokens.size(1) - 1;
  return F::cross_entropy(logits.narrow(1, 0, each).flatten(0, 1), tokens.narrow(1, 1, each).flatten());
}

TEST(LanguageModelLoss, IsTheShiftedCrossEntropyWithItsGradient) {
  torch::manual_seed(1);
  // A block of more rows than are worked on at once, and one of two tokens.
  for (const auto& [blocks, length] : {std::pair(2, 300), std::pair(3, 2), std::pair(1, 129)}) {
    const at::Tensor ours = torch::randn({blocks, length, 17}).requires_grad_(true);
    const at::Tensor theirs = ours.detach().clone().requires_grad_(true);
    const at::Tensor tokens = torch::randint(17, {blocks, length}, at::kLong);
    const Loss loss = language_model_loss(ours * 3, tokens);
    const at::Tensor expected = shifted_cross_entropy(theirs * 3, tokens);
    EXPECT_NEAR(loss.mean.item<double>(), expected.item<double>(), 1e-5);
    EXPECT_EQ(loss.count, blocks * (length - 1));
    const auto best = (theirs * 3).narrow(1, 0, length - 1).argmax(2);
    EXPECT_EQ(loss.correct, best.eq(tokens.narrow(1, 1, length - 1)).sum().item<int64_t>());
    (loss.mean * 0.25).backward();
    (expected * 0.25).backward();
    EXPECT_TRUE(at::allclose(ours.grad(), theirs.grad(), 1e-4, 1e-8));
    EXPECT_EQ(ours.grad().select(1, length - 1).abs().sum().item<double>(), 0) << "the last predicts nothing";
  }
}

TEST(LanguageModelLoss, StaysFiniteWhereExponentialsDoNot) {
  const at::Tensor tokens = torch::tensor({{0, 1, 2}}, at::kLong);
  const at::Tensor leaf = torch::zeros({1, 3, 4}).requires_grad_(true);
  const at::Tensor large = torch::tensor({1e4F, 0.0F, -1e4F, 0.0F});
  const Loss loss = language_model_loss(leaf + large, tokens);
  EXPECT_NEAR(loss.mean.item<double>(), 1.5e4, 1);  // 1e4 and 2e4
  loss.mean.backward();
  EXPECT_TRUE(leaf.grad().isfinite().all().item<bool>());
}

TEST(LanguageModelLoss, TakesBfloat16AndSumsInFloat32) {
  torch::manual_seed(2);
  const at::Tensor leaf = torch::randn({2, 40, 19}).to(at::kBFloat16).requires_grad_(true);
  const at::Tensor same = leaf.detach().to(at::kFloat).requires_grad_(true);
  const at::Tensor tokens = torch::randint(19, {2, 40}, at::kLong);
  const Loss loss = language_model_loss(leaf * 1, tokens);
  const at::Tensor expected = shifted_cross_entropy(same, tokens);
  EXPECT_EQ(loss.mean.scalar_type(), at::kFloat);
  EXPECT_NEAR(loss.mean.item<double>(), expected.item<double>(), 1e-5);
  loss.mean.backward();
  expected.backward();
  EXPECT_TRUE(at::allclose(leaf.grad().to(at::kFloat), same.grad(), 1e-2, 1e-6));
}

TEST(LanguageModelLoss, ItsGradientTakesTheLogitsMemory) {
  const at::Tensor leaf = torch::randn({1, 5, 7}).requires_grad_(true);
  const at::Tensor tokens = torch::randint(7, {1, 5}, at::kLong);
  const at::Tensor logits = leaf * 2;
  at::Tensor gradient;
  logits.register_hook([&](const at::Tensor& given) { gradient = given; });
  language_model_loss(logits, tokens).mean.backward();
  EXPECT_EQ(gradient.data_ptr(), logits.data_ptr());
  // What still needs the logits is told so, and gets no wrong gradient.
  const at::Tensor needed = leaf.exp();
  EXPECT_THROW(language_model_loss(needed, tokens).mean.backward(), c10::Error);
}

TEST(LanguageModelLoss, WithoutAGraphLeavesTheLogits) {
  const torch::NoGradGuard no_grad;
  const at::Tensor logits = torch::randn({2, 5, 7});
  const at::Tensor before = logits.clone();
  const at::Tensor tokens = torch::randint(7, {2, 5}, at::kLong);
  const Loss loss = language_model_loss(logits, tokens);
  EXPECT_FALSE(loss.mean.requires_grad());
  EXPECT_NEAR(loss.mean.item<double>(), shifted_cross_entropy(logits, tokens).item<double>(), 1e-5);
  EXPECT_TRUE(at::equal(logits, before));
}

TEST(LanguageModelLoss, ShapesMustFit) {
  const auto loss = [](std::vector<int64_t> logits, std::vector<int64_t> tokens) {
    return language_model_loss(torch::zeros(logits), torch::zeros(tokens, at::kLong));
  };
  EXPECT_THROW(loss({2, 3, 4}, {2, 2}), InternalError);
  EXPECT_THROW(loss({2, 3}, {2, 3}), InternalError);
  EXPECT_THROW(loss({2, 1, 4}, {2, 1}), InternalError) << "nothing follows";
}

TEST(RegressionLoss, IsTheMeanOfSquaresOverAllNumbers) {
  const at::Tensor output = torch::tensor({{1.0F, 2.0F}, {3.0F, -4.0F}, {0.5F, 0.0F}}).requires_grad_(true);
  const at::Tensor targets = torch::tensor({{0.0F, 2.0F}, {5.0F, -1.0F}, {0.0F, 0.0F}});
  const Loss loss = regression_loss(output, targets);
  EXPECT_NEAR(loss.mean.item<double>(), (1 + 0 + 4 + 9 + 0.25 + 0) / 6, 1e-6);
  EXPECT_EQ(loss.count, 6);
  EXPECT_EQ(loss.correct, 0);
  loss.mean.backward();
  EXPECT_TRUE(at::allclose(output.grad(), (output.detach() - targets) * 2 / 6));
  EXPECT_EQ(regression_loss(output.detach().to(at::kBFloat16), targets).mean.item<double>(),
            loss.mean.item<double>())
      << "all are numbers of bfloat16";
}

TEST(RegressionLoss, ShapesMustBeTheSame) {
  EXPECT_EQ(test::message_of<InputError>([] {
              regression_loss(torch::zeros({3, 1}), torch::zeros({3}));
            }),
            "targets of shape [3]: expected the shape of the network's output, [3, 1]");
}

TEST(ClassificationLoss, IsTheMeanOverTheSamples) {
  const at::Tensor output = torch::tensor({{2.0F, 0.0F}, {1.0F, 0.0F}});
  const Loss loss = classification_loss(output, torch::tensor({0, 1}, at::kLong));
  EXPECT_NEAR(loss.mean.item<double>(), (std::log1p(std::exp(-2.0)) + std::log1p(std::exp(1.0))) / 2, 1e-6);
  EXPECT_EQ(loss.correct, 1);
  EXPECT_EQ(loss.count, 2);
  const Loss rounded = classification_loss(output.to(at::kBFloat16), torch::tensor({0, 1}, at::kLong));
  EXPECT_EQ(rounded.mean.item<double>(), loss.mean.item<double>()) << "both are numbers of bfloat16";
}

}  // namespace
}  // namespace strait
