#pragma once

#include <cstdint>
#include <vector>

#include "strait/models/model.h"

namespace strait {

/// A perceptron with `layers` hidden layers of `width` rectified numbers: input [B, ...] with samples of the
/// shape `sample`, which are flattened, output [B, outputs]. Layers: hidden.0, hidden.1, ..., head, each with
/// PyTorch's `weight`, [out, in], and `bias`, initialised as nn.Linear is.
Model make_mlp(int64_t width, int64_t layers, const std::vector<int64_t>& sample, int64_t outputs);

}  // namespace strait
