#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "strait/base/rng_scope.h"
#include "tests/models/tiny_gpt2.h"

namespace strait::test {

inline at::Tensor logits(const Model& model, const at::Tensor& tokens) {
  return model.forward(tokens, 0, model.layers.size());
}

/// Expects that what is predicted at a place of two rows of ten tokens depends on those up to it alone. Gives
/// the logits.
inline at::Tensor expect_nothing_seen_of_later(const Model& model, const at::Tensor& tokens) {
  at::Tensor changed = tokens.clone();
  changed.select(1, 6).add_(1).remainder_(tiny_gpt2().vocab);
  at::Tensor before = logits(model, tokens);
  const at::Tensor after = logits(model, changed);
  EXPECT_EQ(before.sizes(), (std::vector<int64_t>{2, 10, 19}));
  EXPECT_TRUE(at::equal(before.narrow(1, 0, 6), after.narrow(1, 0, 6)));
  for (int64_t place = 6; place < 10; ++place) {
    EXPECT_FALSE(at::allclose(before.select(1, place), after.select(1, place))) << place;
  }
  return before;
}

/// One pass in training mode with the draws of a step: the loss, then the gradients of all parameters.
inline std::vector<at::Tensor> pass(Model& model, const at::Tensor& tokens) {
  model.train(true);
  const at::Tensor loss = [&] {
    const RngScope draws({.seed = 7, .step = 3});
    return next_token_loss(logits(model, tokens), tokens);
  }();
  loss.backward();
  std::vector<at::Tensor> all = {loss.detach()};
  for (const auto& parameter : model.parameters()) all.push_back(parameter.grad());
  return all;
}

/// Expects that a model that recomputes trains with the bits of one that does not; `make` draws its weights.
inline void expect_the_bits_of_recomputing(const std::function<Model(bool recompute)>& make) {
  const at::Tensor tokens = random_tokens(3, 10);
  std::vector<std::vector<at::Tensor>> results;
  for (const bool recompute : {false, true}) {
    torch::manual_seed(4);
    Model model = make(recompute);
    results.push_back(pass(model, tokens));
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(at::equal(results[0][i], results[1][i])) << i;
}

}  // namespace strait::test
