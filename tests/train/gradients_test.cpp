#include "strait/train/gradients.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/rng_scope.h"
#include "strait/train/optimizer.h"
#include "tests/train/tied_network.h"

namespace strait {
namespace {

namespace nn = torch::nn;
using test::State;
using test::tied_data;
using test::tied_model;

TEST(Gradients, TiedParametersAreOneParameter) {
  // The same network with one tensor in both places, trained by LibTorch alone.
  TrainerOptions plain = test::tied_options(1, 0);
  plain.compression = {};
  const State got = test::tied_state_after(plain);
  EXPECT_TRUE(at::equal(got.front().second, got.back().second));

  Model model = tied_model();
  const at::Tensor weight = model.named_parameters().front().second;
  const auto first = model.layers[1].layer;
  const auto second = model.layers[2].layer;
  std::vector<at::Tensor> parameters = {weight};
  for (const auto& layer : {first, second}) {
    for (const auto& parameter : layer->parameters()) parameters.push_back(parameter);
  }
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(5e-4));
  const DataSplits splits = tied_data();
  uint64_t step = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& group : optimizer.param_groups()) {
      static_cast<torch::optim::SGDOptions&>(group.options())
          .lr(learning_rate(plain.train.schedule, plain.train.optimizer.lr, {.epoch = epoch}));
    }
    Loader loader(splits.train, {.order = epoch_order(plain.seed, epoch, 20),
                                 .batch_size = 8,
                                 .augmentation_key = augmentation_key(plain.seed, epoch)});
    while (const auto batch = loader.next()) {
      const RngScope draws({.seed = plain.seed, .step = step++});
      optimizer.zero_grad();
      const at::Tensor hidden = second->forward(first->forward(at::matmul(batch->inputs, weight)));
      nn::functional::cross_entropy(at::matmul(hidden, weight.t()), batch->targets).backward();
      optimizer.step();
    }
  }
  EXPECT_TRUE(at::allclose(got.front().second, weight, 1e-5, 1e-6));
}

TEST(Gradients, ClippingIsPyTorchs) {
  for (const double limit : {0.1, 1e6}) {
    Model model = tied_model();
    model.ties.clear();
    const auto stages = cut_into_stages(model, {"a"});
    SingleProcessGroup alone;
    Gradients gradients(model, stages, {0, 0}, alone);
    std::vector<at::Tensor> expected;
    for (const auto& parameter : model.parameters()) {
      parameter.mutable_grad() = torch::randn_like(parameter);
      expected.push_back(parameter.detach().clone());
      expected.back().mutable_grad() = parameter.grad().clone();
    }
    gradients.clip(limit);
    nn::utils::clip_grad_norm_(expected, limit);
    const auto parameters = model.parameters();
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::allclose(parameters[i].grad(), expected[i].grad(), 1e-6, 1e-9)) << limit << " " << i;
    }
  }
}

TEST(Gradients, ANormThatIsNotFiniteIsADivergence) {
  Model model = tied_model();
  SingleProcessGroup alone;
  Gradients gradients(model, cut_into_stages(model, {}), {0}, alone);
  for (const auto& parameter : model.parameters()) parameter.mutable_grad() = torch::zeros_like(parameter);
  model.parameters()[1].mutable_grad()[0] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(gradients.clip(1), NumericError);
}

}  // namespace
}  // namespace strait
