#pragma once

#include <cstddef>
#include <span>

namespace strait::kernels {

/// Columns of the sums below.
inline constexpr size_t kSumLanes = 16;

// A sum has one order on every machine and device. The terms stand row by row in rows of kSumLanes, the last
// filled up with zeros. Neighbouring rows are added, 2 i and 2 i + 1, then neighbouring sums of rows, until one
// row is left (one without a neighbour stays as it is), whose elements are added likewise.

/// The sum of |x|. Where an element is not finite, nor is the sum.
float sum_of_magnitudes(std::span<const float> x);

/// What stands on either side of zero.
struct Sides {
  float positive = 0;    ///< the sum of the elements >= 0, -0 among them
  float negative = 0;    ///< the sum of those < 0
  size_t negatives = 0;  ///< how many are < 0
};

/// The sums on either side. Where an element is not finite, one of them is not.
Sides sums_by_sign(std::span<const float> x);

/// One bit an element, LSB-first, padded with zeros: 1 where x < 0. out.size() == packed_size(x.size(), 1).
void pack_signs(std::span<const float> x, std::span<std::byte> out);

/// One of two values for each bit; the padding is ignored. in.size() == packed_size(out.size(), 1).
void unpack_signs(std::span<const std::byte> in, float if_clear, float if_set, std::span<float> out);

}  // namespace strait::kernels
