#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace strait {

/// Sets each element of x, [rows, ...], to zero with the given probability, below 1, and scales the others by
/// 1 / (1 - probability), so that the mean stays. `place` tells apart the dropouts of a network. Which elements
/// go is a function of the place, the element and the current DrawKey: the same on every device, in every
/// micro-batch and process.
at::Tensor dropout(const at::Tensor& x, double probability, uint64_t place);

}  // namespace strait
