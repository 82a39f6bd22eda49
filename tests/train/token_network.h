#pragma once

#include <torch/torch.h>

#include "strait/models/dropout.h"
#include "strait/models/layer.h"
#include "strait/train/trainer.h"
#include "tests/train/fixed_dataset.h"

namespace strait::test {

inline constexpr int64_t kVocabulary = 11;
inline constexpr int64_t kBlock = 6;
inline constexpr int64_t kVector = 8;
inline constexpr uint64_t kPlace = 1;  // of the dropout

class TokenVectors : public Layer {
 public:
  TokenVectors() : weight_(register_parameter("weight", torch::randn({kVocabulary, kVector}))) {}
  at::Tensor forward(const at::Tensor& x) override { return at::embedding(weight_, x.to(at::kLong)); }

 private:
  at::Tensor weight_;
};

class Between : public Layer {
 public:
  Between() : linear_(register_module("linear", torch::nn::Linear(kVector, kVector))) {}
  at::Tensor forward(const at::Tensor& x) override {
    const at::Tensor y = linear_(x).tanh();
    return is_training() && drops_ ? dropout(y, 0.2, kPlace) : y;
  }
  void set_dropout(bool on) { drops_ = on; }

 private:
  torch::nn::Linear linear_;
  bool drops_ = false;
};

class ToVocabulary : public Layer {
 public:
  ToVocabulary() : linear_(register_module("linear", torch::nn::Linear(kVector, kVocabulary))) {}
  at::Tensor forward(const at::Tensor& x) override { return linear_(x); }

 private:
  torch::nn::Linear linear_;
};

/// A language model that knows of the token before alone; the same weights at every call.
inline Model token_model(bool drops = false) {
  torch::manual_seed(8);
  const auto between = std::make_shared<Between>();
  between->set_dropout(drops);
  Model model;
  model.sample_shape = {kBlock};
  model.layers = {{"embed", "embed", std::make_shared<TokenVectors>()},
                  {"between", "between", between},
                  {"head", "head", std::make_shared<ToVocabulary>()}};
  return model;
}

/// Blocks of tokens, the same at every call.
inline std::shared_ptr<FixedDataset> token_data(int64_t blocks) {
  torch::manual_seed(9);
  const at::Tensor tokens = torch::randint(kVocabulary, {blocks, kBlock}, at::kLong);
  return std::make_shared<FixedDataset>(tokens, tokens);
}

inline TrainerOptions token_options() {
  TrainerOptions options;
  options.seed = 3;
  options.batch_size = 5;
  options.train.epochs = 2;
  options.train.device = "cpu";
  options.train.optimizer = {.kind = "adamw", .lr = 0.02, .weight_decay = 0.01};
  options.train.schedule = {.kind = "linear", .warmup_steps = 3};
  options.train.clip_norm = 0.5;
  options.cuts = {"embed", "between"};
  options.task = language_modeling();
  return options;
}

}  // namespace strait::test
