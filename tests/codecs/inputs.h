#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "strait/codecs/codec.h"

namespace strait {

struct NamedTensor {
  std::string name;
  at::Tensor x;
};

/// Finite tensors that every codec meets in the conformance tests. Some cannot be sent by some codecs
/// because they are past the range of its format.
std::vector<NamedTensor> finite_inputs();

/// A normal sample with mean 0.2 that depends on the seed alone.
at::Tensor normal_tensor(std::vector<int64_t> shape, unsigned seed);

std::vector<float> values_of(const at::Tensor& x);

/// Equal shapes and equal bits, -0 and +0 told apart.
bool same_bits(const at::Tensor& a, const at::Tensor& b);

/// The payload that the codec writes.
std::vector<std::byte> encoded(const Codec& codec, const at::Tensor& x, const MessageContext& context = {});

/// What the receiver sees of x.
at::Tensor received(const std::string& spec, const at::Tensor& x, const MessageContext& context = {});

at::Tensor decoded(const Codec& codec, std::span<const std::byte> payload, const MessageMeta& meta,
                   const MessageContext& context = {});

}  // namespace strait
