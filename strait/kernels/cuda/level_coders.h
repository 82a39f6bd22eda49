#pragma once

#include <cstdint>

#include "strait/kernels/cuda/coder.h"
#include "strait/kernels/cuda/host_device.h"
#include "strait/kernels/levels.h"

namespace strait::kernels::cuda {

/// Coders of levels.h: an element over a scale that comes of the group's largest magnitude. What a coder is,
/// coder.h says.
struct MagnitudeCoder {
  /// The bits of the largest magnitude.
  struct Extent {
    uint32_t largest = 0;  ///< as magnitude_bits()
  };
  /// The scale.
  using Line = float;

  /// Of eight elements.
  static constexpr Extent see(const float (&x)[kOctet]) {
    uint32_t largest = 0;
    for (const float element : x) largest = greatest_of(largest, magnitude_bits(element));
    return {largest};
  }
  /// What both have seen.
  static constexpr Extent join(Extent a, Extent b) { return {greatest_of(a.largest, b.largest)}; }
  /// Whether the scale is neither negative nor -0, and what the units from -`end` to `end` stand for is finite.
  static constexpr bool is_scale(float scale, float end) {
    return std::bit_cast<uint32_t>(scale) >> 31 == 0 && is_finite(scale * end);
  }
  /// The scale; 0 stands for 1.
  static constexpr Divisor divisor(float scale) { return Divisor::of(scale == 0 ? 1.0F : scale); }
  /// The element itself.
  static constexpr float dividend(float x, Line /*scale*/) { return x; }
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
  Divisor greatest;   ///< level

  /// For levels of so many bits.
  static constexpr SymmetricCoder of(uint32_t bits, Rounding rounding) {
    return {{}, {}, bits, rounding, Divisor::of(static_cast<float>(signed_levels(bits)))};
  }

  /// The largest magnitude itself.
  static constexpr Line line(Extent seen) { return std::bit_cast<float>(seen.largest); }
  /// Whether it is finite.
  static constexpr bool is_sendable(Line scale) { return is_scale(scale, 1); }
  /// Whether a decoder takes it.
  static constexpr bool is_received(Line scale) { return is_scale(scale, 1); }
  /// Of a stochastic level.
  constexpr bool sees_last_bits() const { return rounding.is_stochastic; }
  /// The level, with the greatest one added.
  constexpr uint32_t code(float x, float quotient, uint64_t index) const {
    constexpr float kRounder = 0x1.8p23F;  // adding it rounds half to even, for both signs
    if (!rounding.is_stochastic) {
      const float t = quotient * greatest.by;
      return std::bit_cast<uint32_t>(t + kRounder) - std::bit_cast<uint32_t>(kRounder) + signed_levels(bits);
    }
    const float raw = std::bit_cast<float>(magnitude_bits(quotient)) * greatest.by;
    const float t = raw < greatest.by ? raw : greatest.by;
    const auto floor = static_cast<int32_t>(t);
    const float dither = dither_at(rounding.dither, rounding.dither.first_index + index);
    const int32_t level = floor + (dither < t - static_cast<float>(floor) ? 1 : 0);
    return static_cast<uint32_t>((std::bit_cast<uint32_t>(x) >> 31 != 0 ? -level : level) +
                                 static_cast<int32_t>(signed_levels(bits)));
  }
  /// The code past the greatest level stands for nothing.
  constexpr bool is_code(uint32_t code, Line /*scale*/) const { return code <= 2 * signed_levels(bits); }
  /// What a code stands for.
  STRAIT_HOST_DEVICE float value(uint32_t code, Line scale) const {
    const auto level =
        static_cast<float>(static_cast<int32_t>(code) - static_cast<int32_t>(signed_levels(bits)));
    return 0.0F + scale * greatest.quick(level);
  }
};

/// Numbers of a small floating-point format: small_floats(), and what their codes stand for.
struct SmallFloatCodes {
  SmallFloat format;  ///< as in levels.h
  uint32_t bits = 0;  ///< format.bits
  float step = 0;     ///< of the subnormal numbers

  /// Numbers of a format.
  static constexpr SmallFloatCodes of(SmallFloat format) {
    return {format, format.bits, format.least_normal / static_cast<float>(1U << format.mantissa_bits)};
  }

  /// Mantissa bits of a float32 that fall away.
  constexpr uint32_t cut() const { return 23 - format.mantissa_bits; }
  /// What the exponent's bias is less than float32's, at the exponent's place in a code.
  constexpr uint32_t rebias() const {
    return (biased_exponent(format.least_normal) - 1) << format.mantissa_bits;
  }
  /// So small a number rounds to 0.
  static constexpr bool sees_last_bits() { return false; }
  /// The code of x, of which the quotient by the scale is given, whose sign is that of x.
  constexpr uint32_t code(float x, float quotient, uint64_t /*index*/) const {
    const float raw = std::bit_cast<float>(magnitude_bits(quotient));
    const float value = raw < format.largest ? raw : format.largest;
    const uint32_t sign = std::bit_cast<uint32_t>(x) >> 31 << (bits - 1);
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
    const float unit = magnitude < 1U << format.mantissa_bits
                           ? static_cast<float>(magnitude) * step
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
  /// The scale.
  static constexpr PowerOfTwo divisor(Line scale) { return PowerOfTwo::of(scale); }
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
  /// The scale.
  static constexpr PowerOfTwo divisor(Line scale) { return PowerOfTwo::of(scale); }
  /// So small a number rounds to 0.
  static constexpr bool sees_last_bits() { return false; }
  /// The code of an element.
  static constexpr uint32_t code(float /*x*/, float quotient, uint64_t /*index*/) {
    constexpr float kRounder = 0x1.8p23F;
    const float t = quotient * 64;
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
