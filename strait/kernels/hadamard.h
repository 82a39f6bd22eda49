#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strait::kernels {

/// Elements of a block that are rotated together.
inline constexpr size_t kRotated = 64;

// The rotation of a block is H D / 8: D changes the sign of element i where bit i of `signs` is set, and H is
// the Hadamard matrix of Sylvester. float32 in one order: every element is divided by 8; then, for h = 1, 2, 4,
// ..., 32, elements a and b that stand h apart in pairs of runs of h become a + b and a - b. The inverse is D H
// / 8. x.size() == out.size(); what is left behind whole blocks of kRotated is copied.

/// Rotates each block. `x` may be `out`. Returns the bits of the largest magnitude in `x`: above those of
/// infinity where an element is NaN.
uint32_t rotate(std::span<const float> x, uint64_t signs, std::span<float> out);

/// Undoes it. False where an element of `out` is not finite.
bool rotate_back(std::span<const float> x, uint64_t signs, std::span<float> out);

}  // namespace strait::kernels
