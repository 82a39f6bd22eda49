#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

#include "strait/kernels/levels.h"

namespace strait {

/// `e4m3`, `e5m2`, `e3m2`, `e2m3` or `e2m1`: bits of exponent and mantissa (OCP 8-bit Floating Point 1.0, OCP
/// Microscaling 1.0; e4m3 without infinities). Nothing for another name.
std::optional<kernels::SmallFloat> small_float(std::string_view name);

/// What the format's codes stand for.
kernels::CodeTable table_of(const kernels::SmallFloat& format);

/// The codes that kernels::small_floats() gives for values / 1, int64 of the same shape.
at::Tensor codes_of(const at::Tensor& values, const kernels::SmallFloat& format);

}  // namespace strait
