#pragma once

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"
#include "strait/kernels/cuda/range_coder.h"
#include "strait/kernels/levels.h"

namespace strait::kernels::cuda {

/// Coders of levels.h: an element over a scale that comes of the group's largest magnitude. What a coder is,
/// range_coder.h says.
struct MagnitudeCoder {
  /// The bits of the largest magnitude.
  struct Extent {
    uint32_t largest = 0;  ///< as magnitude_bits()
  };
  /// The scale.
  using Line = float;

  /// Takes an element into account.
  static constexpr Extent see(Extent seen, float x) { return {greatest_of(seen.largest, magnitude_bits(x))}; }
  /// What both have seen.
  static constexpr Extent join(Extent a, Extent b) { return {greatest_of(a.largest, b.largest)}; }
  /// Whether the scale is neither negative nor -0, and what the units from -`end` to `end` stand for is finite.
  static constexpr bool is_scale(float scale, float end) {
    return std::bit_cast<uint32_t>(scale) >> 31 == 0 && is_finite(scale * end);
  }
  /// 0 stands for 1.
  static constexpr float divisor(float scale) { return scale == 0 ? 1.0F : scale; }
};

/// A coder's header that is the scale itself, s:f32.
struct ScaleHeader {
  /// Bytes of a header.
  static constexpr uint32_t kHeaderSize = 4;
  /// Writes the header of a group; `headers` are those of all groups, aligned for float.
  static STRAIT_HOST_DEVICE void put_header(void* headers, uint64_t group, float scale) {
    static_cast<float*>(headers)[group] = scale;
  }
  /// The way back.
  static STRAIT_HOST_DEVICE float read_header(const void* headers, uint64_t group) {
    return static_cast<const float*>(headers)[group];
  }
};

/// A coder's header that is the exponent of a scale that is a power of two, 127 added: u8; 0 is 2^-127.
struct ExponentHeader {
  /// Bytes of a header.
  static constexpr uint32_t kHeaderSize = 1;
  /// Writes the header of a group.
  static STRAIT_HOST_DEVICE void put_header(void* headers, uint64_t group, float scale) {
    static_cast<uint8_t*>(headers)[group] = static_cast<uint8_t>(biased_exponent(scale));
  }
  /// The way back.
  static STRAIT_HOST_DEVICE float read_header(const void* headers, uint64_t group) {
    return power_of_two(static_cast<const uint8_t*>(headers)[group]);
  }
  /// 2^(exponent - 127); infinite for 255.
  static constexpr float power_of_two(uint32_t exponent) {
    return std::bit_cast<float>(exponent == 0 ? 1U << 22 : exponent << 23);
  }
  /// The scale for elements up to this magnitude, in a format whose largest number has this exponent.
  static constexpr float scale_of(float largest, uint32_t largest_exponent) {
    if (!is_finite(largest)) return largest;
    const uint32_t exponent = biased_exponent(largest);
    return power_of_two(exponent > largest_exponent ? exponent - largest_exponent : 0);
  }
};

/// `quant` with levels=symmetric: uniform_levels() and uniform_levels_stochastic().
struct SymmetricCoder : MagnitudeCoder, ScaleHeader {
  uint32_t bits = 0;  ///< 2 to 8
  Rounding rounding;  ///< of the levels

  /// The largest magnitude itself.
  static constexpr Line line(Extent seen) { return std::bit_cast<float>(seen.largest); }
  /// Whether it is finite.
  static constexpr bool is_sendable(Line scale) { return is_scale(scale, 1); }
  /// Whether a decoder takes it.
  static constexpr bool is_received(Line scale) { return is_scale(scale, 1); }
  /// The level, with the greatest one added.
  constexpr uint32_t code(float x, Line scale, uint64_t index) const {
    constexpr float kRounder = 0x1.8p23F;  // adding it rounds half to even, for both signs
    const auto greatest = static_cast<int32_t>(signed_levels(bits));
    const auto most = static_cast<float>(greatest);
    if (!rounding.is_stochastic) {
      const float t = x / divisor(scale) * most;
      return std::bit_cast<uint32_t>(t + kRounder) - std::bit_cast<uint32_t>(kRounder) + signed_levels(bits);
    }
    const float raw = std::bit_cast<float>(magnitude_bits(x)) / divisor(scale) * most;
    const float t = raw < most ? raw : most;
    const auto floor = static_cast<int32_t>(t);
    const float dither = dither_at(rounding.dither, rounding.dither.first_index + index);
    const int32_t level = floor + (dither < t - static_cast<float>(floor) ? 1 : 0);
    return static_cast<uint32_t>((std::bit_cast<uint32_t>(x) >> 31 != 0 ? -level : level) + greatest);
  }
  /// The code past the greatest level stands for nothing.
  constexpr bool is_code(uint32_t code, Line /*scale*/) const { return code <= 2 * signed_levels(bits); }
  /// What a code stands for.
  constexpr float value(uint32_t code, Line scale) const {
    const auto greatest = static_cast<int32_t>(signed_levels(bits));
    return 0.0F +
           scale * (static_cast<float>(static_cast<int32_t>(code) - greatest) / static_cast<float>(greatest));
  }
};

/// Numbers of a small floating-point format: small_floats(), and what their codes stand for.
struct SmallFloatCodes {
  SmallFloat format;  ///< as in levels.h
  uint32_t bits = 0;  ///< format.bits

  /// Numbers of a format.
  static constexpr SmallFloatCodes of(SmallFloat format) { return {format, format.bits}; }

  /// Mantissa bits of a float32 that fall away.
  constexpr uint32_t cut() const { return 23 - format.mantissa_bits; }
  /// What the exponent's bias is less than float32's, at the exponent's place in a code.
  constexpr uint32_t rebias() const {
    return (biased_exponent(format.least_normal) - 1) << format.mantissa_bits;
  }
  /// The code of x over the scale.
  constexpr uint32_t code_of(float quotient) const {
    const float raw = std::bit_cast<float>(magnitude_bits(quotient));
    const float value = raw < format.largest ? raw : format.largest;
    const uint32_t sign = std::bit_cast<uint32_t>(quotient) >> 31 << (bits - 1);
    // A sum with this number, 2^23 of the steps of the subnormal numbers, rounds to such a step.
    const uint32_t rounder = (biased_exponent(format.least_normal) + cut()) << 23;
    if (value < format.least_normal) {
      return (std::bit_cast<uint32_t>(value + std::bit_cast<float>(rounder)) - rounder) | sign;
    }
    const auto raw_bits = std::bit_cast<uint32_t>(value);
    return (((raw_bits + (1U << (cut() - 1)) - 1 + (raw_bits >> cut() & 1)) >> cut()) - rebias()) | sign;
  }
  /// What a code stands for, the scale apart.
  constexpr float unit_of(uint32_t code) const {
    const uint32_t magnitude = code & ((1U << (bits - 1)) - 1);
    const uint32_t steps = 1U << format.mantissa_bits;
    const float step = format.least_normal / static_cast<float>(steps);
    const float unit = magnitude < steps ? static_cast<float>(magnitude) * step
                                         : std::bit_cast<float>((magnitude + rebias()) << cut());
    return code >> (bits - 1) != 0 ? -unit : unit;
  }
  /// Whether a code stands for a number.
  constexpr bool is_code_of(uint32_t code) const {
    return magnitude_bits(unit_of(code)) <= magnitude_bits(format.largest);
  }
};

/// `fp8`: a scale that brings the largest element to the format's largest number.
struct Fp8Coder : MagnitudeCoder, ScaleHeader, SmallFloatCodes {
  /// In this format.
  static constexpr Fp8Coder of(SmallFloat format) { return {{}, {}, SmallFloatCodes::of(format)}; }
  /// The largest magnitude over the largest number.
  constexpr Line line(Extent seen) const { return std::bit_cast<float>(seen.largest) / format.largest; }
  /// Whether all that the receiver may see is finite.
  constexpr bool is_sendable(Line scale) const { return is_scale(scale, format.largest); }
  /// Whether a decoder takes it.
  constexpr bool is_received(Line scale) const { return is_sendable(scale); }
  /// The code of an element.
  constexpr uint32_t code(float x, Line scale, uint64_t /*index*/) const { return code_of(x / divisor(scale)); }
  /// Whether the code stands for a number.
  constexpr bool is_code(uint32_t code, Line /*scale*/) const { return is_code_of(code); }
  /// What a code stands for.
  constexpr float value(uint32_t code, Line scale) const { return 0.0F + scale * unit_of(code); }
};

/// `mx` with a small floating-point format: a scale that is a power of two.
struct MxFloatCoder : MagnitudeCoder, ExponentHeader, SmallFloatCodes {
  /// In this format.
  static constexpr MxFloatCoder of(SmallFloat format) { return {{}, {}, SmallFloatCodes::of(format)}; }
  /// The power of two by which the largest magnitude's exponent is that of the largest number.
  constexpr Line line(Extent seen) const {
    return scale_of(std::bit_cast<float>(seen.largest), biased_exponent(format.largest) - 127);
  }
  /// Whether all that the receiver may see is finite.
  constexpr bool is_sendable(Line scale) const { return is_scale(scale, format.largest); }
  /// Whether a decoder takes it.
  constexpr bool is_received(Line scale) const { return is_sendable(scale); }
  /// The code of an element.
  constexpr uint32_t code(float x, Line scale, uint64_t /*index*/) const { return code_of(x / scale); }
  /// Whether the code stands for a number.
  constexpr bool is_code(uint32_t code, Line /*scale*/) const { return is_code_of(code); }
  /// What a code stands for.
  constexpr float value(uint32_t code, Line scale) const { return 0.0F + scale * unit_of(code); }
};

/// `mx:int8`: two's complement in units of 1/64, from -127 to 127 (fixed_points()).
struct MxIntegerCoder : MagnitudeCoder, ExponentHeader {
  uint32_t bits = 8;  ///< of a code

  /// The power of two of the largest magnitude.
  static constexpr Line line(Extent seen) { return scale_of(std::bit_cast<float>(seen.largest), 0); }
  /// Whether all that the receiver may see is finite.
  static constexpr bool is_sendable(Line scale) { return is_scale(scale, 127.0F / 64); }
  /// Whether a decoder takes it.
  static constexpr bool is_received(Line scale) { return is_sendable(scale); }
  /// The code of an element.
  static constexpr uint32_t code(float x, Line scale, uint64_t /*index*/) {
    constexpr float kRounder = 0x1.8p23F;
    const float t = x / scale * 64;
    const float low = t > -127 ? t : -127.0F;
    const float both = low < 127 ? low : 127.0F;
    return (std::bit_cast<uint32_t>(both + kRounder) - std::bit_cast<uint32_t>(kRounder)) & 0xff;
  }
  /// -128 stands for nothing.
  static constexpr bool is_code(uint32_t code, Line /*scale*/) { return code != 0x80; }
  /// What a code stands for.
  static constexpr float value(uint32_t code, Line scale) {
    return 0.0F + scale * (static_cast<float>(static_cast<int8_t>(code)) / 64);
  }
};

}  // namespace strait::kernels::cuda
