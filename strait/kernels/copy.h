#pragma once

#include <cstddef>
#include <span>

namespace strait::kernels {

/// Copies the elements as little-endian float32; returns false when one is not finite (the copy is
/// complete all the same). `out` has 4 bytes per element.
bool copy_finite(std::span<const float> x, std::span<std::byte> out);

/// The way back: `in` has 4 bytes per element of `out`, at any alignment.
bool copy_finite(std::span<const std::byte> in, std::span<float> out);

/// Whether no element is NaN or infinite.
bool all_finite(std::span<const float> x);

}  // namespace strait::kernels
