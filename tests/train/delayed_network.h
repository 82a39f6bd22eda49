#pragma once

#include <torch/torch.h>

#include "strait/models/layer.h"
#include "strait/train/trainer.h"
#include "tests/train/fixed_dataset.h"

namespace strait::test {

inline constexpr int64_t kFeatures = 5;
inline constexpr int64_t kAnswers = 4;
inline constexpr int kDenseStages = 4;

/// A linear layer, of which all but the last have a tanh behind.
class Dense : public Layer {
 public:
  Dense(int64_t in, int64_t out, bool last)
      : linear_(register_module("linear", torch::nn::Linear(in, out))), last_(last) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = linear_(x);
    return last_ ? y : y.tanh();
  }

 private:
  torch::nn::Linear linear_;
  bool last_;
};

/// As many layers as stages, the same weights at every call.
inline Model dense_model() {
  torch::manual_seed(11);
  Model model;
  model.sample_shape = {kFeatures};
  model.layers = {{"a", "a", std::make_shared<Dense>(kFeatures, 8, false)},
                  {"b", "b", std::make_shared<Dense>(8, 7, false)},
                  {"c", "c", std::make_shared<Dense>(7, 6, false)},
                  {"d", "d", std::make_shared<Dense>(6, kAnswers, true)}};
  return model;
}

/// 22 samples to train with, and as many to test.
inline DataSplits dense_data() {
  torch::manual_seed(12);
  const auto set = [] {
    return std::make_shared<FixedDataset>(torch::randn({22, kFeatures}), torch::randint(kAnswers, {22}));
  };
  return {set(), set()};
}

/// A stage for each layer; batches of 6, the last of 4, and two epochs.
inline TrainerOptions dense_options(const std::string& schedule, int micro_batches) {
  TrainerOptions options;
  options.seed = 3;
  options.batch_size = 6;
  options.train.epochs = 2;
  options.train.device = "cpu";
  options.train.optimizer.lr = 0.2;
  options.train.schedule = {.kind = "linear", .warmup_steps = 2};
  options.pipeline = {.schedule = schedule, .micro_batches = micro_batches};
  options.cuts = {"a", "b", "c"};
  return options;
}

}  // namespace strait::test
