#include "strait/kernels/natural.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/natural.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/codes-inl.h"
#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

bool to_powers(std::span<const float> x, Dither dither, std::span<std::byte> signs,
               std::span<std::byte> exponents) {
  constexpr uint32_t kGreatest = 254U << 23;  // 2^127
  uint32_t largest = 0;
  alignas(64) Codes codes;
  alignas(64) Draws draws;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, x.size() - begin);
    const float* const from = x.data() + begin;
    for (size_t i = 0; i < count; i += 16) prefetch(from + i + kAhead);
    draw(dither, dither.first_index + begin, count, draws);
    alignas(64) Codes powers;
    for (size_t i = 0; i < count; ++i) {
      const auto bits = std::bit_cast<uint32_t>(from[i]);
      const uint32_t magnitude = bits & 0x7fffffff;
      largest = std::max(largest, magnitude);
      const auto rest = static_cast<float>(static_cast<int32_t>(magnitude & 0x7fffff)) * 0x1p-23F;
      powers[i] =
          static_cast<uint8_t>((magnitude >> 23) + (static_cast<float>(draws[i]) * 0x1p-24F < rest ? 1 : 0));
      codes[i] = static_cast<uint8_t>(bits >> 31);
    }
    std::memcpy(exponents.data() + begin, powers.data(), count);
    pack_codes<1>(codes, count, signs.data() + begin / 8);
  }
  return largest <= kGreatest;
}

bool from_powers(std::span<const std::byte> signs, std::span<const std::byte> exponents, std::span<float> out) {
  uint32_t largest = 0;
  alignas(64) Codes codes;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    float* const to = out.data() + begin;
    for (size_t i = 0; i < count; i += 16) prefetch(to + i + kAhead);
    unpack_codes<1>(signs.data() + begin / 8, count, codes);
    alignas(64) Codes powers;
    std::memcpy(powers.data(), exponents.data() + begin, count);
    for (size_t i = 0; i < count; ++i) {
      const uint32_t exponent = powers[i];
      largest = std::max(largest, exponent);
      to[i] = std::bit_cast<float>(static_cast<uint32_t>(codes[i]) << 31 | exponent << 23);
    }
  }
  return largest < 255;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(to_powers);
HWY_EXPORT(from_powers);

bool to_powers(std::span<const float> x, Dither dither, std::span<std::byte> signs,
               std::span<std::byte> exponents) {
  return STRAIT_KERNEL(to_powers)(x, dither, signs, exponents);
}

bool from_powers(std::span<const std::byte> signs, std::span<const std::byte> exponents, std::span<float> out) {
  return STRAIT_KERNEL(from_powers)(signs, exponents, out);
}

}  // namespace strait::kernels
#endif
