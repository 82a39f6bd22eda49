#pragma once

#include <cstdint>
#include <limits>

#include "strait/kernels/cuda/coder.h"
#include "strait/kernels/quantise.h"

namespace strait::kernels::cuda {

/// `quant` with levels=range and ends of float32 (kernels/quantise.h).
struct RangeCoder {
  /// The least and the greatest element.
  struct Extent {
    uint32_t below = 0;  ///< ~key of the least
    uint32_t above = 0;  ///< key of the greatest
  };
  /// lo and hi.
  using Line = Range;
  /// lo:f32 hi:f32.
  static constexpr uint32_t kHeaderSize = 8;

  uint32_t bits = 0;  ///< 1 to 8
  Rounding rounding;  ///< of the codes
  Divisor levels;     ///< L, the greatest code

  /// For codes of so many bits.
  static constexpr RangeCoder of(uint32_t bits, Rounding rounding) {
    return {bits, rounding, Divisor::of(static_cast<float>((1U << bits) - 1))};
  }

  /// Floats as unsigned integers of the same order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
  static constexpr uint32_t key_of(float x) {
    const auto raw = std::bit_cast<uint32_t>(x);
    return raw ^ ((raw >> 31) != 0 ? 0xffffffff : 0x80000000);
  }
  /// The way back.
  static constexpr float from_key(uint32_t key) {
    return std::bit_cast<float>(key ^ ((key >> 31) != 0 ? 0x80000000 : 0xffffffff));
  }

  /// Of eight elements; where one is NaN, one whose line is that.
  static STRAIT_HOST_DEVICE Extent see(const float (&x)[kOctet]) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    float least = x[0];
    float greatest = x[0];
    bool has_nan = false;
    for (const float element : x) {  // fminf() and fmaxf() leave NaN out
      least = fminf(least, element);
      greatest = fmaxf(greatest, element);
      has_nan = has_nan || !(fabsf(element) <= kInfinity);
    }
    return has_nan ? Extent{0xffffffff, 0xffffffff} : Extent{~key_of(least), key_of(greatest)};
  }
  /// What both have seen.
  static constexpr Extent join(Extent a, Extent b) {
    return {greatest_of(a.below, b.below), greatest_of(a.above, b.above)};
  }
  /// The range of at least one element; neither end is -0.
  constexpr Line line(Extent seen) const { return {from_key(~seen.below) + 0.0F, from_key(seen.above) + 0.0F}; }
  /// As kernels::is_usable().
  constexpr bool is_sendable(Line line) const {
    return is_finite(line.lo) && is_finite(line.hi) && is_finite(line.lo + (line.hi - line.lo));
  }
  /// Whether a decoder takes the line.
  constexpr bool is_received(Line line) const {
    return is_sendable(line) && line.lo <= line.hi && std::bit_cast<uint32_t>(line.lo) != 0x80000000 &&
           std::bit_cast<uint32_t>(line.hi) != 0x80000000;
  }
  /// Writes the header of a group; `headers` are those of all groups, aligned for float.
  static STRAIT_HOST_DEVICE void put_header(void* headers, uint64_t group, Line line) {
    auto* const out = static_cast<float*>(headers) + 2 * group;
    out[0] = line.lo;
    out[1] = line.hi;
  }
  /// The way back.
  static STRAIT_HOST_DEVICE Line read_header(const void* headers, uint64_t group) {
    const auto* const in = static_cast<const float*>(headers) + 2 * group;
    return {in[0], in[1]};
  }

  /// The length of the range, or 1.
  static constexpr Divisor divisor(Line line) {
    return Divisor::of(line.hi == line.lo ? 1.0F : line.hi - line.lo);
  }
  /// How far an element is from its begin.
  static constexpr float dividend(float x, Line line) { return x - line.lo; }
  /// Of a stochastic one.
  constexpr bool sees_last_bits() const { return rounding.is_stochastic; }
  /// The code of an element, at `index` of the message.
  constexpr uint32_t code(float /*x*/, float quotient, uint64_t index) const {
    const float t = quotient * levels.by;
    // In [2^23, 2^24) floats are integers: adding rounds half to even.
    if (!rounding.is_stochastic) return std::bit_cast<uint32_t>(t + 0x1p23F) & 0xff;
    const auto floor = static_cast<int32_t>(t);
    const float rest = t - static_cast<float>(floor);
    const float dither = dither_at(rounding.dither, rounding.dither.first_index + index);
    return static_cast<uint32_t>(floor + (dither < rest ? 1 : 0));
  }
  /// Where all elements are equal every code is 0.
  constexpr bool is_code(uint32_t code, Line line) const { return (code == 0) | (line.lo != line.hi); }
  /// What a code stands for.
  STRAIT_HOST_DEVICE float value(uint32_t code, Line line) const {
    return line.lo + levels.quick(static_cast<float>(code)) * (line.hi - line.lo);
  }
};

/// The same with ends of bfloat16.
struct ShortRangeCoder : RangeCoder {
  /// lo:bf16 hi:bf16.
  static constexpr uint32_t kHeaderSize = 4;

  /// For codes of so many bits.
  static constexpr ShortRangeCoder of(uint32_t bits, Rounding rounding) {
    return {RangeCoder::of(bits, rounding)};
  }

  /// The range of at least one element, wider where bfloat16 asks for it.
  constexpr Line line(Extent seen) const { return range_around(RangeCoder::line(seen), RangeType::bf16); }
  /// Writes the header of a group; `headers` are those of all groups, aligned for float.
  static STRAIT_HOST_DEVICE void put_header(void* headers, uint64_t group, Line line) {
    static_cast<uint32_t*>(headers)[group] =
        std::bit_cast<uint32_t>(line.lo) >> 16 | (std::bit_cast<uint32_t>(line.hi) & 0xffff0000);
  }
  /// The way back.
  static STRAIT_HOST_DEVICE Line read_header(const void* headers, uint64_t group) {
    const uint32_t ends = static_cast<const uint32_t*>(headers)[group];
    return {std::bit_cast<float>(ends << 16), std::bit_cast<float>(ends & 0xffff0000)};
  }
};

}  // namespace strait::kernels::cuda
