#include "strait/train/previous_weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/models/layer.h"

namespace strait {
namespace {

/// Draws from LibTorch's generator and moves its running statistics.
class NoisyLayer : public Layer {
 public:
  NoisyLayer()
      : linear_(register_module("linear", torch::nn::Linear(4, 4))),
        norm_(register_module("norm", torch::nn::BatchNorm1d(4))) {}
  at::Tensor forward(const at::Tensor& x) override { return torch::dropout(norm_(linear_(x)), 0.5, true); }

 private:
  torch::nn::Linear linear_;
  torch::nn::BatchNorm1d norm_;
};

at::Generator generator() { return at::globalContext().defaultGenerator(at::kCPU); }

using WeightsByName = std::map<std::string, at::Tensor>;

/// Those that there are, copied.
WeightsByName saved(PreviousWeights& previous) {
  struct Saver : StateVisitor {
    void tensor(std::string_view name, at::Tensor& value) override {
      if (value.defined()) weights.emplace(name, value.clone());
    }
    WeightsByName weights;
  } saver;
  previous.visit_state(saver);
  return saver.weights;
}

void load(PreviousWeights& previous, const WeightsByName& weights) {
  struct Loader : StateVisitor {
    explicit Loader(const WeightsByName& all) : from(all) {}
    void tensor(std::string_view name, at::Tensor& value) override {
      value = from.at(std::string(name)).clone();
    }
    const WeightsByName& from;
  } loader(weights);
  previous.visit_state(loader);
}

class PreviousWeightsTest : public testing::Test {
 protected:
  PreviousWeightsTest() {
    torch::manual_seed(31);
    model_.sample_shape = {4};
    model_.layers = {{"a", "a", std::make_shared<NoisyLayer>()}, {"b", "b", std::make_shared<NoisyLayer>()}};
    x_ = torch::randn({5, 4});
  }
  void pass() { model_.forward(x_, 0, 2).square().sum().backward(); }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (const auto& parameter : model_.parameters()) all.push_back(parameter.grad().clone());
    return all;
  }
  void forget_gradients() {
    for (const auto& parameter : model_.parameters()) parameter.mutable_grad().reset();
  }
  void change_weights() {
    const torch::NoGradGuard no_grad;
    for (const auto& parameter : model_.parameters()) parameter.mul_(1.5).add_(0.25);
  }

  Model model_;
  at::Tensor x_;
};

TEST_F(PreviousWeightsTest, GiveTheGradientsThatTheBatchHadAndLeaveNothingBehind) {
  PreviousWeights previous(model_);
  const at::Tensor drawn_from = generator().get_state();
  pass();
  const auto then = gradients();
  forget_gradients();
  previous.keep();
  change_weights();
  generator().set_state(drawn_from);

  pass();  // another batch of the step
  std::vector<at::Tensor> before;
  for (const auto& [name, value] : model_.state()) before.push_back(value.clone());
  const auto own = gradients();
  generator().set_state(drawn_from);
  previous.begin();
  EXPECT_TRUE(previous.gradients().empty());
  for (int batch = 1; batch < 3; ++batch) {
    previous.run([&] { pass(); });
    ASSERT_EQ(previous.gradients().size(), then.size());
    for (size_t i = 0; i < then.size(); ++i)
      EXPECT_TRUE(at::allclose(previous.gradients()[i], batch * then[i], 1e-4, 1e-5)) << i;
    for (size_t i = 0; const auto& [name, value] : model_.state())
      EXPECT_TRUE(at::equal(value, before[i++])) << name;
    for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(at::equal(gradients()[i], own[i])) << i;
    EXPECT_TRUE(at::equal(generator().get_state(), drawn_from));
  }
}

TEST_F(PreviousWeightsTest, APassThatThrowsLeavesNothingBehindEither) {
  PreviousWeights previous(model_);
  previous.keep();
  change_weights();
  std::vector<at::Tensor> before;
  for (const auto& [name, value] : model_.state()) before.push_back(value.clone());
  EXPECT_THROW(previous.run([&] {
    pass();
    throw NumericError("what a pass throws");
  }),
               NumericError);
  for (size_t i = 0; const auto& [name, value] : model_.state())
    EXPECT_TRUE(at::equal(value, before[i++])) << name;
  for (const auto& parameter : model_.parameters()) EXPECT_FALSE(parameter.grad().defined());
}

TEST_F(PreviousWeightsTest, AreShownUnderTheParametersNames) {
  PreviousWeights previous(model_);
  EXPECT_TRUE(saved(previous).empty());
  EXPECT_THROW(previous.run([] {}), InternalError);
  previous.keep();
  const auto state = saved(previous);
  change_weights();
  const auto parameters = model_.named_parameters();
  ASSERT_EQ(state.size(), parameters.size());
  for (const auto& [name, parameter] : parameters) EXPECT_FALSE(at::equal(state.at(name), parameter)) << name;
  PreviousWeights other(model_);
  load(other, state);
  other.run([&] {
    for (const auto& [name, parameter] : model_.named_parameters())
      EXPECT_TRUE(at::equal(parameter, state.at(name))) << name;
  });
  other.drop();
  EXPECT_TRUE(saved(other).empty());
}

}  // namespace
}  // namespace strait
