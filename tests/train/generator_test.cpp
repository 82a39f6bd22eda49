#include "strait/train/generator.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>

#include "strait/base/error.h"
#include "strait/models/gpt2.h"

namespace strait {
namespace {

constexpr int64_t kContext = 8;

Model small_model() {
  at::manual_seed(1);
  Model model = make_gpt2({.width = 8, .layers = 2, .heads = 2, .context = kContext, .vocab = 20}, kContext);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.mul_(5);  // so that tokens matter
  return model;
}

Generator generator_with(const std::string& codec, std::vector<std::string> cuts = {"embed", "h.0", "h.1"}) {
  CompressionOptions compression;
  compression.activations.codec = codec;
  return {small_model(), cuts, compression, kContext};
}

std::vector<int64_t> generate(Generator& generator, bool compressed, const SamplingOptions& options = {},
                              int64_t count = 20) {
  return generator.generate({3, 1, 4}, count, compressed, options, [](int64_t) { return true; });
}

TEST(DrawToken, IsTheLikeliestWithoutTemperature) {
  const at::Tensor logits = torch::tensor({0.5, 2.0, 2.0, -1.0});
  for (const double uniform : {0.0, 0.5, 0.999999}) {
    EXPECT_EQ(draw_token(logits, {.temperature = 0}, uniform), 1);  // of equal ones the first
    EXPECT_EQ(draw_token(logits, {.top_k = 1}, uniform), 1);
    EXPECT_EQ(draw_token(logits, {.tokens = 1}, uniform), 0);  // however unlikely
  }
}

TEST(DrawToken, FollowsTheProbabilities) {
  const std::vector<double> probabilities = {0.1, 0.2, 0.3, 0.4};
  for (const double temperature : {1.0, 0.5}) {
    const at::Tensor logits = torch::tensor(probabilities, at::kDouble).log() * temperature;
    std::map<int64_t, int> counts;
    constexpr int kDraws = 1000;
    for (int i = 0; i < kDraws; ++i) {
      ++counts[draw_token(logits, {.temperature = temperature}, (i + 0.5) / kDraws)];
    }
    for (int64_t token = 0; token < 4; ++token) {
      EXPECT_NEAR(counts[token], probabilities[static_cast<size_t>(token)] * kDraws, 1);
    }
  }
}

TEST(DrawToken, IsTheLikeliestAtTheSmallestTemperature) {
  const at::Tensor logits = torch::tensor({-300.0, 200.0, 100.0});
  for (const double uniform : {0.0, 0.5, 0.999999}) {
    EXPECT_EQ(draw_token(logits, {.temperature = 5e-324}, uniform), 1);
  }
}

TEST(DrawToken, StaysAmongTheTopK) {
  const at::Tensor logits = torch::tensor({0.1, 0.4, 0.2, 0.3});
  for (int i = 0; i < 100; ++i) {
    const int64_t token = draw_token(logits, {.top_k = 2}, i / 100.0);
    EXPECT_TRUE(token == 1 || token == 3) << token;
  }
  EXPECT_EQ(draw_token(logits, {.top_k = 9}, 0.9999), 0);  // more than there are: all of them
}

TEST(DrawToken, RefusesWhatIsNoNumber) {
  EXPECT_THROW(draw_token(torch::tensor({0.0, double{NAN}}), {}, 0.5), NumericError);
}

TEST(Generator, TakesTheModelsLikeliestTokenWhateverTheCuts) {
  const torch::NoGradGuard no_grad;
  Model model = small_model();
  model.train(false);
  std::vector<int64_t> text = {3, 1, 4};
  for (int i = 0; i < 20; ++i) {
    const auto begin = text.size() > kContext ? text.end() - kContext : text.begin();
    const at::Tensor tokens = torch::tensor(std::vector<int64_t>(begin, text.end()), at::kLong).unsqueeze(0);
    text.push_back(model.forward(tokens, 0, model.layers.size())[0][-1].argmax().item<int64_t>());
  }
  const std::vector<int64_t> expected(text.begin() + 3, text.end());
  for (const auto& cuts : std::vector<std::vector<std::string>>{{}, {"h.0"}, {"embed", "h.0", "h.1"}}) {
    Generator generator = generator_with("topk:0.1", cuts);
    EXPECT_EQ(generate(generator, false, {.temperature = 0}), expected);
  }
}

TEST(Generator, IsAFunctionOfTheSeed) {
  Generator generator = generator_with("none");
  const auto first = generate(generator, false, {.seed = 7});
  EXPECT_EQ(generate(generator, false, {.seed = 7}), first);
  EXPECT_EQ(generate(generator, true, {.seed = 7}), first);  // codec none
  EXPECT_NE(generate(generator, false, {.seed = 8}), first);
}

TEST(Generator, HearsWhatCompressionDoes) {
  Generator generator = generator_with("topk:0.02");
  EXPECT_NE(generate(generator, true, {.temperature = 0}), generate(generator, false, {.temperature = 0}));
}

TEST(Generator, EndsWhereItIsTold) {
  Generator generator = generator_with("none");
  std::vector<int64_t> heard;
  const auto two = [&](int64_t token) {
    heard.push_back(token);
    return heard.size() < 2;
  };
  EXPECT_EQ(generator.generate({3}, 20, false, {}, two), heard);
  EXPECT_EQ(heard.size(), 2U);
}

}  // namespace
}  // namespace strait
