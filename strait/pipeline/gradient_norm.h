#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <utility>

#include "strait/transport/group.h"

namespace strait {

/// A parameter of this process and the number of its stage.
using StageParameter = std::pair<size_t, at::Tensor>;

/// Scales the gradients of `scaled`, those of this process, so that the 2-norm over the stages of all processes
/// is at most `limit`, as PyTorch's clip_grad_norm_ does, and gives the norm that they had. `counted` are this
/// process's parameters that the norm is of; one without a gradient counts not at all. Sums stage by stage, so
/// that the bits do not depend on the number of processes. Collective. Throws NumericError where the norm is
/// not finite.
double clip_gradients(std::span<const StageParameter> counted, std::span<const at::Tensor> scaled,
                      size_t stage_count, double limit, Group& group);

}  // namespace strait
