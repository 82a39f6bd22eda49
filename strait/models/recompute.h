#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace strait {

/// function(x), of which only x is kept for the backward pass: there the function runs again, with the random
/// draws of the first time (strait/base/rng_scope.h), so that value and gradients are the same bits as without
/// (Chen et al. 2016). The gradients of parameters that the function uses are added to them by then. It must
/// not change anything else, and what it refers to must live that long. Without a gradient to x it simply runs.
at::Tensor recomputed(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> function);

}  // namespace strait
