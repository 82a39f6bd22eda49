#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "strait/codecs/codec.h"

namespace strait {

/// What the receiver sees of a tensor.
using Operator = std::function<at::Tensor(const at::Tensor& x, const MessageContext& context)>;

/// What a link applies to tensors.
struct LinkOperators {
  Operator whole;
  Operator larger_half;  ///< this and the next are there for a codec that selects (Selective::half)
  Operator smaller_half;
};

/// Codec::reconstruct of the codec and its halves.
LinkOperators exact_operators(const std::shared_ptr<const Codec>& codec);

/// The same operators in the few LibTorch calls of somebody who has no codecs, encoded as tensors and decoded
/// from them, without packed bits: what a codec's speed is compared with.
///
///     none          clone
///     fp16, bf16    to() and back
///     quant         amin, amax, arithmetic in place to a uint8 tensor and back
///     topk          topk (unsorted) of the magnitudes, gather and scatter; quicker than kthvalue and a mask
///
/// Stochastic rounding draws from LibTorch's generator, and of equal magnitudes topk keeps any; otherwise the
/// values are those of the codec, -0 and +0 apart. Empty for a codec that is none of these.
std::optional<LinkOperators> plain_operators(const std::shared_ptr<const Codec>& codec);

/// A feedback scheme by its definition (docs/operators.md, "Feedback") in plain tensor operations, both ends in
/// one: what a link is checked against, and what its speed is compared with. Each call is the next message; all
/// have the same shape and, for aq-sgd, the same samples. A copy goes on by itself from where it was taken.
/// Throws InputError for a name that is not in link_names().
Operator plain_link(const std::string& feedback, LinkOperators operators);

}  // namespace strait
