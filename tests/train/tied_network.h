#pragma once

#include <torch/torch.h>

#include "strait/models/dropout.h"
#include "strait/models/layer.h"
#include "strait/train/trainer.h"
#include "tests/train/fixed_dataset.h"
#include "tests/train/state.h"

namespace strait::test {

inline constexpr int64_t kClasses = 10;
inline constexpr int64_t kWidth = 12;

/// What a language model ties: the first layer turns classes into vectors with the matrix with which the last
/// layer turns vectors into classes.
class Embed : public Layer {
 public:
  Embed() : weight_(register_parameter("weight", torch::randn({kClasses, kWidth}))) {}
  at::Tensor forward(const at::Tensor& x) override { return at::matmul(x, weight_); }

 private:
  at::Tensor weight_;
};

class Hidden : public Layer {
 public:
  explicit Hidden(uint64_t place)
      : linear_(register_module("linear", torch::nn::Linear(kWidth, kWidth))), place_(place) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = linear_(x).tanh();
    return is_training() ? dropout(y, 0.2, place_) : y;
  }

 private:
  torch::nn::Linear linear_;
  uint64_t place_;
};

class Head : public Layer {
 public:
  Head() : weight_(register_parameter("weight", torch::randn({kClasses, kWidth}))) {}
  at::Tensor forward(const at::Tensor& x) override { return at::matmul(x, weight_.t()); }

 private:
  at::Tensor weight_;
};

/// Four layers with a tie, and dropout in the middle; the same weights at every call.
inline Model tied_model() {
  torch::manual_seed(5);
  Model model;
  model.sample_shape = {kClasses};
  model.layers = {{"embed", "embed", std::make_shared<Embed>()},
                  {"a", "a", std::make_shared<Hidden>(1)},
                  {"b", "b", std::make_shared<Hidden>(2)},
                  {"head", "head", std::make_shared<Head>()}};
  model.ties = {{"embed.weight", "head.weight"}};
  return model;
}

/// 20 samples to train with and as many to test, the same at every call.
inline DataSplits tied_data() {
  torch::manual_seed(6);
  const auto set = [] {
    return std::make_shared<FixedDataset>(torch::randn({20, kClasses}), torch::randint(kClasses, {20}));
  };
  return {set(), set()};
}

/// Cut into four, with feedback on gradients.
inline TrainerOptions tied_options(int micro_batches, double clip_norm) {
  TrainerOptions options;
  options.seed = 3;
  options.batch_size = 8;
  options.train.epochs = 2;
  options.train.device = "cpu";
  options.train.clip_norm = clip_norm;
  options.train.optimizer.lr = 0.1;
  options.pipeline.micro_batches = micro_batches;
  options.compression.gradients = {"topk:0.5", "ef21"};
  options.cuts = {"embed", "a", "b"};
  return options;
}

inline State tied_state_after(const TrainerOptions& options) {
  Trainer trainer(tied_model(), options);
  TrainObserver observer;
  trainer.train(tied_data(), observer);
  return copy_of(trainer.collect_model());
}

}  // namespace strait::test
