#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strait::kernels {

// float32 to the two 16-bit formats and back, bit for bit as LibTorch converts: round to nearest even,
// small values to denormals. Magnitudes are compared as integers, so that a NaN is above infinity.

/// float32 infinity as bits: no finite magnitude reaches it.
constexpr uint32_t kInfinityBits = 0x7f800000;

/// The least magnitude, as float32 bits, that rounds to the format's infinity: 65520 for fp16.
constexpr uint32_t kFp16OverflowBits = 0x477ff000;

/// The same for bf16.
constexpr uint32_t kBf16OverflowBits = 0x7f7f8000;

/// Writes 2 bytes per element, little-endian. Returns the bits of the largest magnitude in `x`: the
/// output is meaningful only where this is below the format's overflow.
uint32_t to_fp16(std::span<const float> x, std::span<std::byte> out);

/// The same in bf16.
uint32_t to_bf16(std::span<const float> x, std::span<std::byte> out);

/// Reads 2 bytes per element of `out`, at any alignment. Returns false when one is not finite.
bool from_fp16(std::span<const std::byte> in, std::span<float> out);

/// The same from bf16.
bool from_bf16(std::span<const std::byte> in, std::span<float> out);

}  // namespace strait::kernels
