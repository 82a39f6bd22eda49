#pragma once

#include <cstddef>
#include <span>

#include "strait/kernels/quantise.h"

namespace strait::kernels {

// Powers of two (Horvath et al. 2022, "natural compression"): an element's sign and the exponent of float32,
// whose mantissa is gone. Exponent 0 stands for 0.

/// Rounds each |x| up to the next power of two where dither < (|x| - lower) / (upper - lower), else down; below
/// 2^-126, the neighbours are 0 and that. Writes one bit an element to `signs`, LSB-first, padded with zeros, 1
/// where the sign bit is set, and one byte to `exponents`. False where an element is not finite or above 2^127,
/// the greatest power of two.
bool to_powers(std::span<const float> x, Dither dither, std::span<std::byte> signs,
               std::span<std::byte> exponents);

/// The way back; the padding is ignored. False where an exponent is 255.
bool from_powers(std::span<const std::byte> signs, std::span<const std::byte> exponents, std::span<float> out);

}  // namespace strait::kernels
