#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace strait {

/// Throws NumericError when the largest magnitude of a tensor, as float32 bits, is not finite or not
/// below `overflow`, the least magnitude that `format` cannot hold.
void check_largest(uint32_t largest, uint32_t overflow, std::string_view format);

/// The bits of the largest magnitude of a tensor with at least one element, on any device. A NaN anywhere
/// gives bits above those of infinity. One pass; waits for the device.
uint32_t largest_magnitude(const at::Tensor& x);

}  // namespace strait
