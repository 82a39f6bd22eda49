#pragma once

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"
#include "strait/kernels/cuda/launch.h"
#include "strait/kernels/half.h"

namespace strait::kernels::cuda {

/// to_fp16() of one element; meaningful where its magnitude is below kFp16OverflowBits.
constexpr uint32_t fp16_of(float x) {
  const uint32_t magnitude = magnitude_bits(x);
  const uint32_t sign = (std::bit_cast<uint32_t>(x) >> 16) & 0x8000;
  // The least normal number of fp16 is 2^-14. Below it the sum with 1/2, whose floats lie as far apart as
  // fp16's subnormal numbers, rounds to one of them.
  if (magnitude < 0x38800000) {
    return (std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<uint32_t>(0.5F)) |
           sign;
  }
  // Else the exponent's bias goes from 127 to 15, and the 13 bits that fall away are rounded half to even.
  return ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13) | sign;
}

/// to_bf16() of one element; meaningful where its magnitude is below kBf16OverflowBits.
constexpr uint32_t bf16_of(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/// from_fp16() of one element; meaningful where it is finite.
constexpr float from_fp16_bits(uint32_t half) {
  const uint32_t magnitude = half & 0x7fff;
  const uint32_t bits = magnitude < 0x400 ? std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24F)
                                          : (magnitude << 13) + 0x38000000;
  return std::bit_cast<float>(bits | (half & 0x8000) << 16);
}

/// from_bf16() of one element.
constexpr float from_bf16_bits(uint32_t half) { return std::bit_cast<float>(half << 16); }

/// A value as the bits of its type.
constexpr uint32_t value_bits(float x, ValueType type) {
  if (type == ValueType::fp32) return std::bit_cast<uint32_t>(x);
  return type == ValueType::fp16 ? fp16_of(x) : bf16_of(x);
}

/// The way back.
constexpr float value_of(uint32_t bits, ValueType type) {
  if (type == ValueType::fp32) return std::bit_cast<float>(bits);
  return type == ValueType::fp16 ? from_fp16_bits(bits) : from_bf16_bits(bits);
}

/// Whether a value is finite and stays so in its type.
constexpr bool is_sendable(float x, ValueType type) {
  const uint32_t overflow = type == ValueType::fp32   ? kInfinityBits
                            : type == ValueType::fp16 ? kFp16OverflowBits
                                                      : kBf16OverflowBits;
  return magnitude_bits(x) < overflow;
}

/// Whether the bits are those of a finite value.
constexpr bool is_received(uint32_t bits, ValueType type) {
  if (type == ValueType::fp32) return (bits & 0x7fffffff) < kInfinityBits;
  return (bits & 0x7fff) < (type == ValueType::fp16 ? 0x7c00U : 0x7f80U);
}

}  // namespace strait::kernels::cuda
