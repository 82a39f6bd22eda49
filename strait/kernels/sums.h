#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

/// The entropy of x in bits: the sum of -p log2 p, p = |x| * (1 / max(sum_of_magnitudes(x), 2^-126)), where a p
/// below 2^-126 counts as 0. 0 where all elements are 0. Where an element is not finite, it is any number.
float entropy(std::span<const float> x);

// log2 p is e + f * P(f), where p = 2^e (1 + f), 1 + f next to 1, and P is a polynomial in Horner's scheme,
// every operation rounded to float32: e = (bits - kLog2Split) >> 23 of p's bits. The error is below 2^-22.

/// The bits of sqrt(1/2), the least 1 + f.
constexpr int32_t kLog2Split = 0x3f3504f3;

/// The coefficients of P, the highest first: the fit of log2(1 + f) / f at Chebyshev's points.
inline constexpr std::array<float, 8> kLog2Terms = {-0.146203533F, 0.23420985F, -0.24882181F,  0.287075609F,
                                                    -0.360241979F, 0.48092404F, -0.721352756F, 1.4426949F};

/// What stands on either side of zero.
struct Sides {
  float positive = 0;    ///< the sum of the elements >= 0, -0 among them
  float negative = 0;    ///< the sum of those < 0
  size_t negatives = 0;  ///< how many are < 0
};

/// The sums on either side. Where an element is not finite, one of them is not.
Sides sums_by_sign(std::span<const float> x);

}  // namespace strait::kernels
