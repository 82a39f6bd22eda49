#pragma once

#include "strait/pipeline/stage.h"

namespace strait {

/// Mean cross-entropy over classes (torch.nn.functional.cross_entropy) and the count of right predictions.
/// `output` is [B, C], `targets` [B] int64.
Loss classification_loss(const at::Tensor& output, const at::Tensor& targets);

/// Mean squared error over all numbers of the targets (torch.nn.MSELoss), each of which counts as a prediction.
/// Both are floating and of one shape [B, ...]; throws InputError where the shapes differ.
Loss regression_loss(const at::Tensor& output, const at::Tensor& targets);

/// The same for a language model, as Hugging Face's GPT2LMHeadModel has it: at each position but a block's last
/// the class is the token that follows.
/// `logits` is [B, T, V] in any floating type, `tokens` [B, T] int64 with T above 1; B * (T - 1) predictions.
///
/// Logits are large, so the backward pass makes their gradient in their own memory: they must not be a leaf,
/// and can be used for nothing else (autograd throws when what computed them needs them still).
Loss language_model_loss(const at::Tensor& logits, const at::Tensor& tokens);

}  // namespace strait
