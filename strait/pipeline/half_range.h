#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace strait {

/// Throws NumericError where a float16 or bfloat16 tensor, made of finite float32, is not finite: a value was
/// past its range. `what` is the tensor in the message. Tensors of other types pass.
void expect_in_range(const at::Tensor& narrowed, std::string_view what);

}  // namespace strait
