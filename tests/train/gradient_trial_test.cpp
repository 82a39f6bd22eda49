#include "strait/train/gradient_trial.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "strait/models/layer.h"
#include "tests/pipeline/compress_function.h"
#include "tests/pipeline/small_network.h"

namespace strait {
namespace {

/// One layer of the small network.
class OfNetwork : public Layer {
 public:
  explicit OfNetwork(torch::nn::Linear linear) : linear_(register_module("linear", std::move(linear))) {}
  at::Tensor forward(const at::Tensor& x) override { return linear_(x); }

 private:
  torch::nn::Linear linear_;
};

class GradientTrialTest : public testing::Test {
 protected:
  GradientTrialTest() {
    model_.sample_shape = {6};
    for (size_t i = 0; const auto& linear : split_.network.layers) {
      const std::string name = "layer" + std::to_string(i++);
      model_.layers.push_back({name, name, std::make_shared<OfNetwork>(linear)});
    }
  }

  static CompressionOptions options(const std::string& codec) {
    CompressionOptions all;
    all.activations.codec = codec;
    all.gradients.codec = codec;
    return all;
  }

  void put(const std::string& activations, const std::string& gradients) {
    for (auto& boundary : executor_.boundaries()) {
      boundary.activations.set_link(make_link(activations));
      boundary.gradients.set_link(make_link(gradients));
    }
  }

  /// The gradient of some rows, a vector a stage, by autograd and the operators alone.
  static std::vector<at::Tensor> gradient(const StepInput& batch, int64_t first, int64_t rows,
                                          const std::string& activations, const std::string& gradients) {
    test::Network whole(1);
    at::Tensor x = batch.inputs.front().narrow(0, first, rows);
    std::vector<test::CompressFunction::Codecs> codecs(
        3, {make_codec(activations), make_codec(gradients), 9, batch.step, 0});
    for (size_t i = 0; i < whole.layers.size(); ++i) {
      x = whole.layer(i, x);
      if (i + 1 < whole.layers.size())
        x = test::CompressFunction::apply(x, reinterpret_cast<int64_t>(&codecs[i]));
    }
    test::cross_entropy(x, batch.targets.narrow(0, first, rows)).mean.backward();
    const auto all = whole.gradients();
    std::vector<at::Tensor> of_stages;
    for (size_t i = 0; i < all.size(); i += 2)
      of_stages.push_back(at::cat({all[i].flatten(), all[i + 1].flatten()}).to(at::kDouble));
    return of_stages;
  }

  static double dot(const at::Tensor& x, const at::Tensor& y) { return at::dot(x, y).item<double>(); }

  /// Of the gradients c and g of the halves a and b, a vector a stage: of vectors of all stages, of which each
  /// is as long as the stage's gradient without codecs is in units of itself.
  static double cosine(std::vector<at::Tensor> c_a, std::vector<at::Tensor> c_b, std::vector<at::Tensor> g_a,
                       std::vector<at::Tensor> g_b) {
    for (size_t stage = 0; stage < g_a.size(); ++stage) {
      const double square = (dot(g_a[stage], g_a[stage]) + dot(g_b[stage], g_b[stage])) / 2;
      for (auto* all : {&c_a, &c_b, &g_a, &g_b}) (*all)[stage] = (*all)[stage] / std::sqrt(square);
    }
    const at::Tensor with_a = at::cat(c_a), with_b = at::cat(c_b), a = at::cat(g_a), b = at::cat(g_b);
    const double own = std::max(0.0, 0.15 - 2 * dot(a, b) / (dot(a, a) + dot(b, b)));
    const auto common = [&](const at::Tensor& x_a, const at::Tensor& x_b, const at::Tensor& y_a,
                            const at::Tensor& y_b) {
      return (dot(x_a, y_b) + dot(x_b, y_a) + own * (dot(x_a, y_a) + dot(x_b, y_b))) / 2;
    };
    const double cosine =
        common(with_a, with_b, a, b) / std::sqrt(common(with_a, with_b, with_a, with_b) * common(a, b, a, b));
    return std::min(cosine, 1.0);
  }

  test::Fixture split_;
  Executor executor_ = split_.executor({"1f1b", 2}, options("none"), 10);
  SingleProcessGroup group_;
  Model model_;
  const std::vector<int> stages_ = {0, 0, 1, 1, 2, 2, 3, 3};  // a weight and a bias each
};

TEST_F(GradientTrialTest, IsTheCosineOfWhatTheHalvesHaveInCommon) {
  const StepInput batch = test::Fixture::batch(20, 3);
  const SidePass pass(model_);
  GradientTrial trial(pass, stages_, executor_, group_, halves_of({batch}));
  trial.set_reference();
  EXPECT_NEAR(cosine_of(trial.products()), 1, 1e-12);
  const auto g_a = gradient(batch, 0, 10, "none", "none");
  const auto g_b = gradient(batch, 10, 10, "none", "none");
  double least = 1;
  for (const auto& [activations, gradients] : std::vector<std::pair<std::string, std::string>>{
           {"quant:2,scope=sample", "none"}, {"none", "topk:0.2"}, {"topk:0.1", "none"}}) {
    put(activations, gradients);
    const auto c_a = gradient(batch, 0, 10, activations, gradients);
    const auto c_b = gradient(batch, 10, 10, activations, gradients);
    const double expected = cosine(c_a, c_b, g_a, g_b);
    EXPECT_NEAR(cosine_of(trial.products()), expected, 1e-6) << activations << " " << gradients;
    least = std::min(least, expected);
  }
  EXPECT_LT(least, 0.95) << "the codecs should lose something";
}

TEST_F(GradientTrialTest, BatchesGoToTheHalvesByTurns) {
  std::vector<StepInput> batches;
  for (int seed = 3; seed < 8; ++seed) batches.push_back(test::Fixture::batch(20, seed));
  const SidePass pass(model_);
  GradientTrial trial(pass, stages_, executor_, group_, halves_of(batches));
  trial.set_reference();
  const auto half = [&](size_t first, const std::string& codec) {
    auto sum = gradient(batches[first], 0, 20, codec, "none");
    const auto other = gradient(batches[first + 2], 0, 20, codec, "none");
    for (size_t stage = 0; stage < sum.size(); ++stage) sum[stage] += other[stage];
    return sum;
  };
  put("topk:0.1", "none");
  const double expected = cosine(half(0, "topk:0.1"), half(1, "topk:0.1"), half(0, "none"), half(1, "none"));
  EXPECT_NEAR(cosine_of(trial.products()), expected, 1e-6) << "the fifth has no other to be compared with";
  EXPECT_LT(expected, 0.95);
}

TEST_F(GradientTrialTest, LeavesNoGradientBehind) {
  const StepInput batch = test::Fixture::batch(20, 3);
  const SidePass pass(model_);
  GradientTrial trial(pass, stages_, executor_, group_, halves_of({batch}));
  trial.set_reference();
  trial.products();
  for (const auto& parameter : model_.parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST_F(GradientTrialTest, OneRowIsEnough) {
  const StepInput batch = test::Fixture::batch(1);
  const SidePass pass(model_);
  GradientTrial trial(pass, stages_, executor_, group_, halves_of({batch}));
  trial.set_reference();
  put("quant:4,scope=sample", "none");
  const double cosine = cosine_of(trial.products());
  EXPECT_GT(cosine, 0.5);
  EXPECT_LT(cosine, 1);
}

TEST_F(GradientTrialTest, AStageWhoseGradientIsNotFiniteHasNothingInCommon) {
  StepInput batch = test::Fixture::batch(20);
  const SidePass pass(model_);
  GradientTrial trial(pass, stages_, executor_, group_, halves_of({batch}));
  trial.set_reference();
  batch.inputs[0].index_put_({3, 2}, std::numeric_limits<float>::quiet_NaN());
  put("quant:4,scope=sample", "none");
  const GradientProducts products = trial.products();
  EXPECT_DOUBLE_EQ(products.without.within, 4) << "of each stage in units of itself";
  EXPECT_GT(cosine_of(products), 0.3);
  EXPECT_LE(cosine_of(products), 0.75);
}

GradientProducts products(double both, double with, double without, double without_within = 1) {
  return {.both = {both, 1}, .with = {with, 1}, .without = {without, without_within}};
}

TEST(GradientProducts, TheCosineIsOfWhatIsCommon) {
  EXPECT_DOUBLE_EQ(cosine_of(products(0.24, 0.36, 0.25)), 0.8);
  EXPECT_EQ(cosine_of(products(-0.24, 0.36, 0.25)), 0);
  EXPECT_EQ(cosine_of(products(0.9, 0.36, 0.25)), 1);
  EXPECT_EQ(cosine_of(products(0.24, -0.36, 0.25)), 0) << "the halves contradict each other";
  EXPECT_EQ(cosine_of({}), 1);
}

TEST(GradientProducts, WhereLittleIsCommonThePlainCosineCountsToo) {
  // A tenth of each of the products within the halves makes 0.05 to 0.15.
  EXPECT_DOUBLE_EQ(cosine_of(products(0.02, 0.06, 0.05)), 0.12 / std::sqrt(0.16 * 0.15));
}

TEST(GradientProducts, EarlierOnesCountForTheirShare) {
  const GradientProducts sum = sum_of(products(0.1, 0.2, 0.3, 4), products(0.4, 0.5, 0.6, 2), 0.5);
  EXPECT_EQ(sum,
            (GradientProducts{.both = {0.1 + 0.2, 1.5}, .with = {0.2 + 0.25, 1.5}, .without = {0.3 + 0.3, 5}}));
}

}  // namespace
}  // namespace strait
