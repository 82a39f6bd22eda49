#include "strait/kernels/half.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/half.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr size_t kBlock = 1024;

/// `yes` where the condition holds, else `no`, without a branch: zeros and ordinary values alternate after
/// a ReLU, and a branch would also keep the loop from being vectorised.
inline uint32_t choose(bool condition, uint32_t yes, uint32_t no) {
  const uint32_t mask = 0 - static_cast<uint32_t>(condition);
  return (yes & mask) | (no & ~mask);
}

inline uint16_t fp16_bits(uint32_t bits) {
  const uint32_t magnitude = bits & kMagnitude;
  // Normal: move the exponent's bias from 127 to 15 and round the 13 bits that fall away to even.
  const uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Denormal: the spacing of floats in [0.5, 1) is that of fp16's denormals, so the addition rounds.
  const uint32_t denormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<uint32_t>(0.5F);
  const uint32_t half = choose(magnitude < 0x38800000, denormal, normal);
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000));
}

inline uint32_t bits_of_fp16(uint32_t half) {
  const uint32_t magnitude = half & 0x7fff;
  const uint32_t normal = (magnitude << 13) + 0x38000000;
  const auto denormal = std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F);
  return choose(magnitude < 0x400, denormal, normal) | ((half & 0x8000) << 16);
}

inline uint16_t bf16_bits(uint32_t bits) {
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/// Converts block by block through a small array, because the message has no alignment.
template <class Convert>
uint32_t narrow(std::span<const float> x, std::span<std::byte> out, Convert convert) {
  std::array<uint16_t, kBlock> block;
  uint32_t largest = 0;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, x.size() - begin);
    for (size_t i = 0; i < count; i += 16) prefetch(x.data() + begin + i + kAhead);
    for (size_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<uint32_t>(x[begin + i]);
      largest = std::max(largest, bits & kMagnitude);
      block[i] = convert(bits);
    }
    std::memcpy(out.data() + begin * sizeof(uint16_t), block.data(), count * sizeof(uint16_t));
  }
  return largest;
}

/// Returns the largest magnitude among the 16-bit patterns.
template <class Convert>
uint32_t widen(std::span<const std::byte> in, std::span<float> out, Convert convert) {
  std::array<uint16_t, kBlock> block;
  uint32_t largest = 0;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    std::memcpy(block.data(), in.data() + begin * sizeof(uint16_t), count * sizeof(uint16_t));
    for (size_t i = 0; i < count; i += 16) prefetch(out.data() + begin + i + kAhead);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t half = block[i];
      largest = std::max(largest, half & 0x7fff);
      out[begin + i] = std::bit_cast<float>(convert(half));
    }
  }
  return largest;
}

}  // namespace

uint32_t to_fp16(std::span<const float> x, std::span<std::byte> out) {
  return narrow(x, out, [](uint32_t bits) { return fp16_bits(bits); });
}

uint32_t to_bf16(std::span<const float> x, std::span<std::byte> out) {
  return narrow(x, out, [](uint32_t bits) { return bf16_bits(bits); });
}

bool from_fp16(std::span<const std::byte> in, std::span<float> out) {
  return widen(in, out, [](uint32_t half) { return bits_of_fp16(half); }) < 0x7c00;
}

bool from_bf16(std::span<const std::byte> in, std::span<float> out) {
  return widen(in, out, [](uint32_t half) { return half << 16; }) < 0x7f80;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(to_fp16);
HWY_EXPORT(to_bf16);
HWY_EXPORT(from_fp16);
HWY_EXPORT(from_bf16);

uint32_t to_fp16(std::span<const float> x, std::span<std::byte> out) { return STRAIT_KERNEL(to_fp16)(x, out); }
uint32_t to_bf16(std::span<const float> x, std::span<std::byte> out) { return STRAIT_KERNEL(to_bf16)(x, out); }
bool from_fp16(std::span<const std::byte> in, std::span<float> out) {
  return STRAIT_KERNEL(from_fp16)(in, out);
}
bool from_bf16(std::span<const std::byte> in, std::span<float> out) {
  return STRAIT_KERNEL(from_bf16)(in, out);
}

}  // namespace strait::kernels
#endif
