#pragma once

#include <vector>

#include "strait/models/layer.h"
#include "strait/models/recompute.h"

namespace strait {

/// A block of a decoder: gives tensors of the shape that it takes. With `recompute` it keeps its input only,
/// and runs again in the backward pass (recomputed()).
class DecoderBlock : public Layer {
 public:
  /// `recompute`: the key of that name.
  explicit DecoderBlock(bool recompute) : recompute_(recompute) {}

  at::Tensor forward(const at::Tensor& x) final { return forward_with(x, {}); }
  at::Tensor forward_with(const at::Tensor& x, const at::Tensor& input) final {
    if (!recompute_) return run(x, input);
    return recomputed(x, [this, input](const at::Tensor& again) { return run(again, input); });
  }

  std::vector<int64_t> output_shape(const std::vector<int64_t>& sample) final { return sample; }

 private:
  virtual at::Tensor run(const at::Tensor& x, const at::Tensor& input) = 0;

  bool recompute_;
};

}  // namespace strait
