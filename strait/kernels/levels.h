#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/kernels/quantise.h"

namespace strait::kernels {

/// What turns the units that codes stand for into the values of a group: offset + scale * unit.
struct Line {
  float offset = 0;   ///< of unit 0
  float scale = 0;    ///< 0 or more
  uint8_t table = 0;  ///< which table the units are of, where there are several
};

/// Elements in groups of `size` that follow each other, the last of which may be shorter, each with its line.
/// `size` is a multiple of 8 where there are several, so that the codes of a group begin on a byte.
struct LineGroups {
  std::span<const Line> lines;  ///< in the groups' order
  size_t size = 0;              ///< elements
};

/// The scale of each group's line becomes the largest magnitude of the group, which is not finite where an
/// element is not.
void largest_magnitudes(std::span<const float> x, size_t size, std::span<Line> lines);

// Signed levels: element x becomes a level l = -S .. S, S = signed_levels(bits), and is written as the code l +
// S of `bits` bits, 2 <= bits <= 8. The code 2 S + 1 stands for nothing. Requires |x| <= scale, and a scale
// that is finite; 0 stands for 1. float32 in the order written; out.size() == packed_size(x.size(), bits).

/// S, the greatest level.
constexpr unsigned signed_levels(unsigned bits) { return (1U << (bits - 1)) - 1; }

/// l = round_half_even(x / scale * S).
void uniform_levels(std::span<const float> x, const LineGroups& groups, unsigned bits,
                    std::span<std::byte> out);

/// |l| = t rounded up where dither < t - floor(t), else down, t = min(|x| / scale * S, S); |x| <= scale is not
/// required.
void uniform_levels_stochastic(std::span<const float> x, const LineGroups& groups, unsigned bits, Dither dither,
                               std::span<std::byte> out);

/// Level l stands for 2^(|l| - S) with the sign of l, and 0 for 0. Of the two neighbours of t = |x| / scale the
/// upper one is taken where dither < (t - lower) / (upper - lower).
void exponential_levels(std::span<const float> x, const LineGroups& groups, unsigned bits, Dither dither,
                        std::span<std::byte> out);

/// A floating-point format of up to 8 bits: the sign, then the exponent, then the mantissa; numbers with the
/// exponent 0 are subnormal. What is above `largest` is no number.
struct SmallFloat {
  unsigned mantissa_bits = 0;  ///< those that are written
  float least_normal = 0;      ///< a power of two
  float largest = 0;           ///< finite number
  unsigned bits = 0;           ///< sign, exponent and mantissa
};

/// The exponent of a float32 number, 127 added; 0 of a subnormal one.
constexpr uint32_t biased_exponent(float x) { return std::bit_cast<uint32_t>(x) >> 23 & 0xff; }

/// x / scale rounded to the nearest number of the format, of two to the even one; what is past the largest
/// becomes the largest. The same requirements.
void small_floats(std::span<const float> x, const LineGroups& groups, const SmallFloat& format,
                  std::span<std::byte> out);

/// round_half_even(x / scale * 64), from -127 to 127, in two's complement. The same requirements.
void fixed_points(std::span<const float> x, const LineGroups& groups, std::span<std::byte> out);

/// floor((x - offset) / scale / step), from -2^(bits - 1) to 2^(bits - 1) - 1, and 2^(bits - 1) added. |x -
/// offset| may be larger than the scale. The same requirements otherwise, 1 <= bits.
void clipped_steps(std::span<const float> x, const LineGroups& groups, float step, unsigned bits,
                   std::span<std::byte> out);

/// What each code of up to 8 bits stands for; NaN for one that stands for nothing.
using CodeTable = std::array<float, 256>;

/// The index of one of the 2^bits ascending points of the line's table, 1 <= bits: with t = (x - offset) /
/// scale, kept between the first and the last point, the upper neighbour of t where dither < (t - lower) /
/// (upper - lower), else the lower one.
void between_points(std::span<const float> x, const LineGroups& groups, std::span<const CodeTable> tables,
                    unsigned bits, Dither dither, std::span<std::byte> out);

/// Writes offset + scale * table[code], float32 in the order written, of the table that the line names; the
/// padding bits are ignored. False where a code stands for nothing. in.size() == packed_size(out.size(), bits).
bool look_up(std::span<const std::byte> in, unsigned bits, std::span<const CodeTable> tables,
             const LineGroups& groups, std::span<float> out);

}  // namespace strait::kernels
