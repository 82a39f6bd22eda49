#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace strait {

/// A step of a network: one tensor in, one tensor out.
class Layer : public torch::nn::Module {
 public:
  /// The output, [B, ...], for the input [B, ...]; part of the autograd graph. Row i depends on row i alone
  /// unless the layer normalises over the batch.
  virtual at::Tensor forward(const at::Tensor& x) = 0;

  /// The same in a network that passes its input on (Model::passed_below): `input` is that of the same rows. By
  /// default a layer has no need of it.
  virtual at::Tensor forward_with(const at::Tensor& x, const at::Tensor& /*input*/) { return forward(x); }

  /// The shape of one sample of the output, for that of the input. Unless a layer knows better it is found by
  /// running a sample of zeros; call it in evaluation mode.
  virtual std::vector<int64_t> output_shape(const std::vector<int64_t>& sample);
};

}  // namespace strait
