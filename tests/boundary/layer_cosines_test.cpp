#include "strait/boundary/layer_cosines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <string>
#include <utility>

namespace strait {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

KeptMessage message(at::Tensor tensor, uint32_t micro_batch = 0) {
  return {std::move(tensor), {.seed = 3, .direction = Direction::gradient, .micro_batch = micro_batch}};
}

/// The gradient of an identity layer by autograd: a 1 x 1 convolution of images, a linear layer of the rest.
at::Tensor gradient_of_identity(at::Tensor x, const at::Tensor& g) {
  const bool images = x.dim() == 4;
  x = x - (images ? x.mean({0, 2, 3}, true) : x.flatten(0, -2).mean(0));
  const int64_t features = images ? x.size(1) : x.size(-1);
  at::Tensor weight = at::eye(features).requires_grad_();
  const at::Tensor y = images ? at::conv2d(x, weight.view({features, features, 1, 1})) : at::linear(x, weight);
  y.backward(g);
  return weight.grad().flatten().to(at::kDouble);
}

double dot(const at::Tensor& x, const at::Tensor& y) { return at::dot(x, y).item<double>(); }

/// The sum of products of different batches' gradients, each weighted.
double between(const std::vector<at::Tensor>& x, const std::vector<at::Tensor>& y,
               const std::vector<double>& weights) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < y.size(); ++j) sum += i == j ? 0 : weights[i] * weights[j] * dot(x[i], y[j]);
  }
  return sum;
}

class LayerCosinesTest : public testing::Test {
 protected:
  LayerCosinesTest() { at::manual_seed(4); }

  static LayerCosines layer(const std::vector<std::string>& codecs) {
    std::vector<std::shared_ptr<const Link>> links;
    for (const auto& codec : codecs) links.push_back(make_link(codec));
    return LayerCosines(std::move(links));
  }

  /// Gradients that have much in common: of the activations, by one matrix, and noise.
  static at::Tensor gradients_of(const at::Tensor& x, double noise = 0.3) {
    const int64_t features = x.dim() == 4 ? x.size(1) : x.size(-1);
    const at::Tensor matrix = at::linspace(-1, 1, features * features).sin().view({features, features});
    const at::Tensor g = x.dim() == 4 ? at::conv2d(x, matrix.view({features, features, 1, 1}))
                                      : at::linear(x, matrix);
    return g + noise * at::randn_like(g);
  }
};

TEST_F(LayerCosinesTest, AreThoseOfALayerByAutograd) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{4, 6, 5, 5}, {4, 7, 6}, {30, 6}}) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const std::vector<std::string> specs = {"none", "quant:2", "topk:0.1", "quant:8"};
    LayerCosines cosines = layer(specs);
    EXPECT_TRUE(cosines.is_empty());
    const std::vector<double> weights = {0.7, 0.7, 0.7, 1, 1};
    std::vector<std::vector<at::Tensor>> with(specs.size());
    for (size_t batch = 0; batch < weights.size(); ++batch) {
      std::vector<KeptMessage> activations;  // in another order than the gradients
      std::vector<KeptMessage> gradients;
      std::vector<at::Tensor> sums(specs.size());
      for (const uint32_t micro_batch : {0U, 1U}) {
        const at::Tensor x = at::randn(shape) + 0.5;
        activations.insert(activations.begin(), message(x, micro_batch));
        const auto& [g, context] = gradients.emplace_back(message(gradients_of(x), micro_batch));
        for (size_t i = 0; i < specs.size(); ++i) {
          const at::Tensor one = gradient_of_identity(x, make_codec(specs[i])->reconstruct(g, context));
          sums[i] = sums[i].defined() ? sums[i] + one : one;
        }
      }
      for (size_t i = 0; i < specs.size(); ++i) {
        with[i].push_back(sums[i]);
      }
      cosines.add(activations, gradients);
      if (batch == 2) cosines.fade();
    }
    const auto expected = [&](size_t codec) {
      return between(with[0], with[codec], weights) /
             std::sqrt(between(with[codec], with[codec], weights) * between(with[0], with[0], weights));
    };
    EXPECT_FALSE(cosines.is_empty());
    ASSERT_LT(expected(2), 0.98);
    EXPECT_THAT(cosines.cosines(), ElementsAre(1, DoubleNear(std::min(expected(1), 0.99), 1e-5),
                                               DoubleNear(expected(2), 1e-5), 1));
  }
}

// Stochastic rounding turns each batch's gradient far more than their mean.
TEST_F(LayerCosinesTest, ErrorsThatDifferFromBatchToBatchCancel) {
  const std::string spec = "quant:2,rounding=stochastic";
  LayerCosines cosines = layer({spec});
  double turned = 0;
  constexpr int kBatches = 12;
  for (int batch = 0; batch < kBatches; ++batch) {
    const at::Tensor x = at::randn({40, 6});
    KeptMessage g = message(gradients_of(x));
    g.context.step = static_cast<uint64_t>(batch);
    const at::Tensor plain = gradient_of_identity(x, g.tensor);
    const at::Tensor with = gradient_of_identity(x, make_codec(spec)->reconstruct(g.tensor, g.context));
    turned += dot(plain, with) / std::sqrt(dot(plain, plain) * dot(with, with)) / kBatches;
    cosines.add(std::vector{message(x)}, std::vector{g});
  }
  EXPECT_LT(turned, 0.97);
  EXPECT_GT(cosines.cosines().at(0), turned + 0.015);
}

TEST_F(LayerCosinesTest, OneBatchAloneHasItsPlainCosine) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({20, 6});
  const KeptMessage g = message(gradients_of(x));
  cosines.add(std::vector{message(x)}, std::vector{g});
  const at::Tensor plain = gradient_of_identity(x, g.tensor);
  const at::Tensor with = gradient_of_identity(x, make_codec("topk:0.1")->reconstruct(g.tensor, g.context));
  EXPECT_NEAR(cosines.cosines().at(0), dot(plain, with) / std::sqrt(dot(plain, plain) * dot(with, with)), 1e-5);
}

// 300 features: every second one.
TEST_F(LayerCosinesTest, OfManyFeaturesSomeAreLookedAt) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({8, 300});
  const KeptMessage g = message(gradients_of(x));
  cosines.add(std::vector{message(x)}, std::vector{g});
  const auto some = [](const at::Tensor& all) { return all.slice(1, 0, 300, 2).contiguous(); };
  const at::Tensor plain = gradient_of_identity(some(x), some(g.tensor));
  const at::Tensor with =
      gradient_of_identity(some(x), some(make_codec("topk:0.1")->reconstruct(g.tensor, g.context)));
  EXPECT_NEAR(cosines.cosines().at(0), dot(plain, with) / std::sqrt(dot(plain, plain) * dot(with, with)), 1e-5);
}

TEST_F(LayerCosinesTest, MessagesWithoutTheOtherDoNotCount) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({8, 6});
  cosines.add(std::vector{message(x, 1)}, std::vector{message(gradients_of(x), 2)});
  EXPECT_TRUE(cosines.is_empty());
  EXPECT_THAT(cosines.cosines(), ElementsAre(1));
}

TEST_F(LayerCosinesTest, WhatCannotBeSentHasNothingInCommonUntilTheNextChoice) {
  LayerCosines cosines = layer({"fp16", "bf16"});
  const at::Tensor x = at::randn({20, 6});
  cosines.add(std::vector{message(x)}, std::vector{message(1e6 * gradients_of(x))});
  EXPECT_THAT(cosines.cosines(), ElementsAre(0, 1));
  cosines.fade();
  cosines.add(std::vector{message(x)}, std::vector{message(gradients_of(x))});
  EXPECT_THAT(cosines.cosines(), ElementsAre(1, 1));
}

// 8 bits have hardly an error in the first batch; a single great value in the second leaves little of the rest.
TEST_F(LayerCosinesTest, ACodecIsLookedAtAgainAtEveryChoice) {
  LayerCosines cosines = layer({"quant:8"});
  at::Tensor x = at::randn({20, 6});
  cosines.add(std::vector{message(x)}, std::vector{message(gradients_of(x))});
  EXPECT_THAT(cosines.cosines(), ElementsAre(1));
  cosines.fade();
  at::Tensor g = gradients_of(x);
  g[0][0] = 3000;
  x[0].zero_();
  cosines.add(std::vector{message(x)}, std::vector{message(g)});
  EXPECT_LE(cosines.cosines().at(0), 0.99);
}

}  // namespace
}  // namespace strait
