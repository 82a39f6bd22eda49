#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "strait/codecs/group_codec.h"

namespace strait {

// Statistics of a group of at least one element, and of several groups as float32 [G, 1], in one order of
// additions (kernels/sums.h). None is finite where an element is not, nor where a sum is past float32. Squares
// are taken of elements over the power of two next to the largest, so that they are neither too large nor too
// small for float32.

/// The largest magnitude.
float largest_magnitude_of(std::span<const float> x);

/// The same of several groups.
at::Tensor largest_magnitudes(const TensorGroups& groups);

/// The mean, +0 where it is -0: the zeros that fill up the rows of a sum differ from path to path.
float mean_of(std::span<const float> x);

/// The same of several groups.
at::Tensor means(const TensorGroups& groups);

/// sqrt(sum of (x - center)^2); 0 where all elements are 0.
float norm_about(std::span<const float> x, float center);

/// The same of several groups.
at::Tensor norms_about(const TensorGroups& groups, const at::Tensor& center);

/// The mean of |x - center|.
float mean_deviation_of(std::span<const float> x, float center);

/// The same of several groups.
at::Tensor mean_deviations(const TensorGroups& groups, const at::Tensor& center);

/// The root of the mean of (x - center)^2.
float deviation_of(std::span<const float> x, float center);

/// The same of several groups.
at::Tensor deviations(const TensorGroups& groups, const at::Tensor& center);

}  // namespace strait
