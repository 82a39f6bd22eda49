#include "strait/boundary/layer_cosines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace strait {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;

constexpr double kAll = -1;  // for small_error: every codec counts

KeptMessage message(at::Tensor tensor, uint32_t micro_batch = 0, uint64_t step = 0) {
  return {std::move(tensor),
          {.seed = 3, .direction = Direction::gradient, .step = step, .micro_batch = micro_batch}};
}

/// The gradient of an identity layer by autograd: a 1 x 1 convolution of images, a linear layer of the rest.
at::Tensor gradient_of_identity(at::Tensor x, const at::Tensor& g) {
  const bool images = x.dim() == 4;
  x = x - (images ? x.mean(at::IntArrayRef({0, 2, 3}), true) : x.flatten(0, -2).mean(0));
  const int64_t features = images ? x.size(1) : x.size(-1);
  at::Tensor weight = at::eye(features).requires_grad_();
  const at::Tensor y = images ? at::conv2d(x, weight.view({features, features, 1, 1})) : at::linear(x, weight);
  y.backward(g);
  return weight.grad().flatten().to(at::kDouble);
}

double product(const at::Tensor& x, const at::Tensor& y) { return at::dot(x, y).item<double>(); }

double cosine(const at::Tensor& x, const at::Tensor& y) {
  return product(x, y) / std::sqrt(product(x, x) * product(y, y));
}

/// The sum of products of gradients of different micro-batches.
double between(const std::vector<at::Tensor>& x, const std::vector<at::Tensor>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < y.size(); ++j) sum += i == j ? 0 : product(x[i], y[j]);
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

  static std::vector<std::optional<double>> of(const LayerCosines& layer) {
    std::vector<std::optional<double>> cosines;
    for (const auto& sums : layer.sums()) cosines.push_back(sums.cosine());
    return cosines;
  }

  /// Gradients that have much in common: of the activations, by one matrix, and noise.
  static at::Tensor gradients_of(const at::Tensor& x, double noise = 0.3) {
    const int64_t features = x.dim() == 4 ? x.size(1) : x.size(-1);
    const at::Tensor matrix = at::linspace(-1, 1, features * features).sin().view({features, features});
    const at::Tensor g =
        x.dim() == 4 ? at::conv2d(x, matrix.view({features, features, 1, 1})) : at::linear(x, matrix);
    return g + noise * at::randn_like(g);
  }

  static at::Tensor through(const std::string& codec, const KeptMessage& gradients) {
    return make_codec(codec)->reconstruct(gradients.tensor, gradients.context);
  }
};

TEST_F(LayerCosinesTest, AreThoseOfALayerByAutograd) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{4, 6, 5, 5}, {4, 7, 6}, {30, 6}}) {
    SCOPED_TRACE(testing::PrintToString(shape));
    const std::vector<std::string> specs = {"none", "quant:2", "topk:0.1"};
    LayerCosines cosines = layer(specs);
    std::vector<double> both(specs.size()), with(specs.size()), without(specs.size());
    for (int batch = 0; batch < 3; ++batch) {
      std::vector<KeptMessage> activations;  // in another order than the gradients
      std::vector<KeptMessage> gradients;
      std::vector<std::vector<at::Tensor>> of_layer(specs.size());
      for (const uint32_t micro_batch : {0U, 1U, 2U}) {
        const at::Tensor x = (batch + 1) * (at::randn(shape) + 0.5);
        activations.insert(activations.begin(), message(x, micro_batch));
        gradients.push_back(message(gradients_of(x), micro_batch));
        for (size_t i = 0; i < specs.size(); ++i)
          of_layer[i].push_back(gradient_of_identity(x, through(specs[i], gradients.back())));
      }
      double squares = 0;
      for (const auto& gradient : of_layer[0]) squares += product(gradient, gradient);
      for (size_t i = 0; i < specs.size(); ++i) {
        both[i] += between(of_layer[0], of_layer[i]) / squares;
        with[i] += between(of_layer[i], of_layer[i]) / squares;
        without[i] += between(of_layer[0], of_layer[0]) / squares;
      }
      cosines.add(activations, gradients, kAll);
      if (batch != 1) continue;
      cosines.fade();
      for (auto* sums : {&both, &with, &without}) {
        for (double& sum : *sums) sum *= 0.5;
      }
    }
    const auto expected = [&](size_t codec) {
      return Optional(DoubleNear(both[codec] / std::sqrt(with[codec] * without[codec]), 1e-5));
    };
    ASSERT_LT(both[2] / std::sqrt(with[2] * without[2]), 0.98);
    EXPECT_THAT(of(cosines), ElementsAre(expected(0), expected(1), expected(2)));
  }
}

// A short batch of fewer micro-batches knows less.
TEST_F(LayerCosinesTest, PairsOfMicroBatchesCountAlikeInBatchesOfMoreAndOfFewer) {
  LayerCosines cosines = layer({"topk:0.1"});
  double both = 0, with = 0, without = 0;
  for (const auto& [micro_batches, noise, scale] : {std::tuple(3U, 0.3, 1.0), {2U, 3.0, 50.0}}) {
    std::vector<KeptMessage> activations;
    std::vector<KeptMessage> gradients;
    std::vector<at::Tensor> plain;
    std::vector<at::Tensor> turned;
    double squares = 0;
    for (uint32_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      const at::Tensor x = at::randn({30, 6});
      activations.push_back(message(x, micro_batch));
      gradients.push_back(message(scale * gradients_of(x, noise), micro_batch));
      plain.push_back(gradient_of_identity(x, gradients.back().tensor));
      turned.push_back(gradient_of_identity(x, through("topk:0.1", gradients.back())));
      squares += product(plain.back(), plain.back()) / micro_batches;
    }
    cosines.add(activations, gradients, kAll);
    both += between(plain, turned) / squares;
    with += between(turned, turned) / squares;
    without += between(plain, plain) / squares;
  }
  EXPECT_THAT(of(cosines), ElementsAre(Optional(DoubleNear(both / std::sqrt(with * without), 1e-5))));
}

// Stochastic rounding turns each batch's gradient far more than their mean.
TEST_F(LayerCosinesTest, ErrorsThatDifferFromSampleToSampleCancel) {
  const std::string spec = "quant:2,rounding=stochastic";
  LayerCosines cosines = layer({spec});
  double turned = 0;
  constexpr int kBatches = 12;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    std::vector<KeptMessage> activations;
    std::vector<KeptMessage> gradients;
    for (uint32_t micro_batch = 0; micro_batch < 4; ++micro_batch) {
      const at::Tensor x = at::randn({20, 6});
      activations.push_back(message(x, micro_batch));
      gradients.push_back(message(gradients_of(x), micro_batch, batch));
      turned += cosine(gradient_of_identity(x, gradients.back().tensor),
                       gradient_of_identity(x, through(spec, gradients.back()))) /
                (4 * kBatches);
    }
    cosines.add(activations, gradients, kAll);
  }
  EXPECT_LT(turned, 0.97);
  EXPECT_GT(of(cosines).at(0).value(), turned + 0.015);
}

// What samples have in common cannot be told from nothing where there is but one.
TEST_F(LayerCosinesTest, OneSampleAloneHasItsPlainCosine) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({1, 20, 6});
  const KeptMessage g = message(gradients_of(x));
  cosines.add(std::vector{message(x)}, std::vector{g}, kAll);
  const double plain =
      cosine(gradient_of_identity(x, g.tensor), gradient_of_identity(x, through("topk:0.1", g)));
  EXPECT_THAT(of(cosines), ElementsAre(Optional(DoubleNear(plain, 1e-5))));
}

TEST_F(LayerCosinesTest, OneMicroBatchAloneIsHalved) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({20, 6});
  const KeptMessage g = message(gradients_of(x));
  cosines.add(std::vector{message(x)}, std::vector{g}, kAll);
  const at::Tensor centred = x - x.mean(0);
  const auto halves = [&](const at::Tensor& gradients) {
    std::vector<at::Tensor> both;
    for (const int64_t first : {0, 10}) {
      both.push_back(
          gradients.narrow(0, first, 10).t().mm(centred.narrow(0, first, 10)).flatten().to(at::kDouble));
    }
    return both;
  };
  const auto plain = halves(g.tensor);
  const auto with = halves(through("topk:0.1", g));
  EXPECT_THAT(of(cosines),
              ElementsAre(Optional(DoubleNear(
                  between(plain, with) / std::sqrt(between(with, with) * between(plain, plain)), 1e-5))));
}

// 300 features: every second one.
TEST_F(LayerCosinesTest, OfManyFeaturesSomeAreLookedAt) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({1, 8, 300});
  const KeptMessage g = message(gradients_of(x));
  cosines.add(std::vector{message(x)}, std::vector{g}, kAll);
  const auto some = [](const at::Tensor& all) { return all.slice(2, 0, 300, 2).contiguous(); };
  const double plain = cosine(gradient_of_identity(some(x), some(g.tensor)),
                              gradient_of_identity(some(x), some(through("topk:0.1", g))));
  EXPECT_THAT(of(cosines), ElementsAre(Optional(DoubleNear(plain, 1e-5))));
}

TEST_F(LayerCosinesTest, NothingIsKnownOfSmallErrorsOrOfMessagesWithoutTheOther) {
  LayerCosines cosines = layer({"quant:8", "topk:0.1"});
  const at::Tensor x = at::randn({8, 6});
  cosines.add(std::vector{message(x, 1)}, std::vector{message(gradients_of(x), 2)}, kAll);
  EXPECT_THAT(of(cosines), ElementsAre(std::nullopt, std::nullopt));
  cosines.add(std::vector{message(x)}, std::vector{message(gradients_of(x))}, 0.2);
  EXPECT_FALSE(of(cosines).at(0));
  EXPECT_TRUE(of(cosines).at(1));
}

TEST_F(LayerCosinesTest, OfReplicasAreThoseOfTheBatchesOfBoth) {
  LayerCosines both = layer({"topk:0.1", "fp16"});
  LayerCosines one = layer({"topk:0.1", "fp16"});
  LayerCosines other = layer({"topk:0.1", "fp16"});
  for (auto* replica : {&one, &other}) {
    const at::Tensor x = at::randn({20, 6});
    const double scale = replica == &one ? 1 : 1e6;  // which fp16 cannot send
    const std::vector gradients = {message(scale * gradients_of(x))};
    replica->add(std::vector{message(x)}, gradients, kAll);
    both.add(std::vector{message(x)}, gradients, kAll);
  }
  std::vector<LayerCosines::Sums> sums = one.sums();
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += other.sums()[i];
  EXPECT_EQ(sums, both.sums());
  EXPECT_EQ(sums[1].cosine(), 0);
  EXPECT_NE(sums[0].cosine(), one.sums()[0].cosine());
}

TEST_F(LayerCosinesTest, WhatCannotBeSentHasNothingInCommonUntilTheNextChoice) {
  LayerCosines cosines = layer({"fp16", "bf16"});
  const at::Tensor x = at::randn({20, 6});
  cosines.add(std::vector{message(x)}, std::vector{message(1e6 * gradients_of(x))}, kAll);
  EXPECT_THAT(of(cosines), ElementsAre(Optional(0), Optional(DoubleNear(1, 1e-3))));
  cosines.fade();
  cosines.add(std::vector{message(x)}, std::vector{message(gradients_of(x))}, kAll);
  EXPECT_THAT(of(cosines), ElementsAre(Optional(DoubleNear(1, 1e-3)), Optional(DoubleNear(1, 1e-3))));
}

// A gradient whose micro-batches point opposite ways has nothing in common to turn.
TEST_F(LayerCosinesTest, WhereMicroBatchesHaveNothingInCommonTheirOwnProductsCount) {
  LayerCosines cosines = layer({"topk:0.1"});
  const at::Tensor x = at::randn({20, 6});
  const at::Tensor g = gradients_of(x);
  cosines.add(std::vector{message(x, 0), message(x, 1)}, std::vector{message(g, 0), message(-g, 1)}, kAll);
  const double plain =
      cosine(gradient_of_identity(x, g), gradient_of_identity(x, through("topk:0.1", message(g))));
  EXPECT_THAT(of(cosines), ElementsAre(Optional(DoubleNear(plain, 1e-5))));
}

}  // namespace
}  // namespace strait
