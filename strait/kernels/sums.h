#pragma once

#include <cstddef>
#include <span>

namespace strait::kernels {

/// Columns of the sums below.
inline constexpr size_t kSumLanes = 16;

// A sum has one order on every machine and device. The terms stand row by row in rows of kSumLanes, the last
// filled up with zeros. Neighbouring rows are added, 2 i and 2 i + 1, then neighbouring sums of rows, until one
// row is left (one without a neighbour stays as it is), whose elements are added likewise.

// Where an element is not finite, nor is the sum.

/// The sum of x.
float sum(std::span<const float> x);

/// The sum of |x|.
float sum_of_magnitudes(std::span<const float> x);

/// The sum of (factor (x - mean))^2.
float sum_of_squared_deviations(std::span<const float> x, float mean, float factor);

/// The sum of |x - mean|.
float sum_of_deviations(std::span<const float> x, float mean);

/// What stands on either side of zero.
struct Sides {
  float positive = 0;    ///< the sum of the elements >= 0, -0 among them
  float negative = 0;    ///< the sum of those < 0
  size_t negatives = 0;  ///< how many are < 0
};

/// The sums on either side. Where an element is not finite, one of them is not.
Sides sums_by_sign(std::span<const float> x);

}  // namespace strait::kernels
