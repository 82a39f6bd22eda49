#pragma once

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"
#include "strait/kernels/quantise.h"

namespace strait::kernels::cuda {

// A coder says how the elements of a group become codes. Each has
//
//   Extent           what is looked for in a group: maxima of unsigned integers, with all bits 0 where nothing
//                    was seen, so that the order in which elements are seen makes no difference
//   see, join        an element, or another Extent
//   Line             what the codes are relative to; line(extent), and is_sendable(line)
//   kHeaderSize      bytes of a line in the message; put_header(), read_header(), is_received(line)
//   bits             of a code
//   code, value      of an element at its place in the message; decoded
//   is_code          whether the code can be one
//
// and is a plain struct, a kernel's argument.

/// Rounding of codes: to nearest, half to even, or stochastic with a dither.
struct Rounding {
  bool is_stochastic = false;  ///< whether the dither is used
  Dither dither;               ///< of the message's element 0
};

/// `quant` with levels=range (kernels/quantise.h).
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

  /// Floats as unsigned integers of the same order: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
  static constexpr uint32_t key_of(float x) {
    const auto raw = std::bit_cast<uint32_t>(x);
    return raw ^ ((raw >> 31) != 0 ? 0xffffffff : 0x80000000);
  }
  /// The way back.
  static constexpr float from_key(uint32_t key) {
    return std::bit_cast<float>(key ^ ((key >> 31) != 0 ? 0x80000000 : 0xffffffff));
  }

  /// Takes an element into account.
  static constexpr Extent see(Extent seen, float x) { return join(seen, {~key_of(x), key_of(x)}); }
  /// What both have seen.
  static constexpr Extent join(Extent a, Extent b) {
    return {greatest_of(a.below, b.below), greatest_of(a.above, b.above)};
  }
  /// The range of at least one element; neither end is -0.
  constexpr Line line(Extent seen) const { return {from_key(~seen.below) + 0.0F, from_key(seen.above) + 0.0F}; }
  /// As kernels::is_usable().
  constexpr bool is_sendable(Line line) const {
    return is_finite(line.lo) && is_finite(line.hi) && is_finite(line.hi - line.lo);
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

  /// L, the greatest code.
  constexpr float levels() const { return static_cast<float>((1U << bits) - 1); }
  /// The code of an element of the group, at `index` of the message.
  constexpr uint32_t code(float x, Line line, uint64_t index) const {
    const float divisor = line.hi == line.lo ? 1.0F : line.hi - line.lo;
    const float t = ((x - line.lo) / divisor) * levels();
    // In [2^23, 2^24) floats are integers: adding rounds half to even.
    if (!rounding.is_stochastic) return std::bit_cast<uint32_t>(t + 0x1p23F) & 0xff;
    const auto floor = static_cast<int32_t>(t);
    const float rest = t - static_cast<float>(floor);
    const float dither = dither_at(rounding.dither, rounding.dither.first_index + index);
    return static_cast<uint32_t>(floor + (dither < rest ? 1 : 0));
  }
  /// Where all elements are equal every code is 0.
  constexpr bool is_code(uint32_t code, Line line) const { return code == 0 || line.lo != line.hi; }
  /// What a code stands for.
  constexpr float value(uint32_t code, Line line) const {
    return line.lo + (static_cast<float>(code) / levels()) * (line.hi - line.lo);
  }
};

}  // namespace strait::kernels::cuda
