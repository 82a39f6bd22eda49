#pragma once

#include <torch/torch.h>

#include "strait/models/gpt2.h"

namespace strait::test {

/// Two blocks of width 12, 10 positions, 19 tokens, without dropout.
inline Gpt2Options tiny_gpt2() {
  return {.width = 12, .layers = 2, .heads = 3, .context = 10, .vocab = 19, .dropout = 0, .recompute = false};
}

inline at::Tensor random_tokens(int64_t rows, int64_t length) {
  return torch::randint(tiny_gpt2().vocab, {rows, length}, torch::kLong);
}

/// The mean cross-entropy of each token's prediction from those before it.
inline at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& tokens) {
  const int64_t count = tokens.size(1) - 1;
  return torch::nn::functional::cross_entropy(logits.narrow(1, 0, count).flatten(0, 1),
                                              tokens.narrow(1, 1, count).flatten());
}

}  // namespace strait::test
