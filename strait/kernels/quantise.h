#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace strait::kernels {

/// The least and the greatest element of a group. Neither is ever -0: zero is always +0, so that the
/// range does not depend on the order in which elements are looked at.
struct Range {
  float lo = 0;  ///< least
  float hi = 0;  ///< greatest
};

/// The type of a range's ends in a message.
enum class RangeType {
  fp32,  ///< as they are
  bf16   ///< wider where they must be: what lies between them still does
};

/// The greatest number of bfloat16 that is not above x; x itself where that is not finite.
constexpr float bf16_at_most(float x) {
  constexpr uint32_t kLowerHalf = 0xffff;
  constexpr uint32_t kExponent = 0x7f800000;
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & kExponent) == kExponent) return x;
  return std::bit_cast<float>((bits >> 31 != 0 ? bits + kLowerHalf : bits) & ~kLowerHalf);
}

/// The narrowest range with ends of that type around it, which may not be finite then; neither is -0.
constexpr Range range_around(Range range, RangeType type) {
  if (type == RangeType::fp32) return range;
  return {bf16_at_most(range.lo) + 0.0F, 0.0F - bf16_at_most(-range.hi)};
}

/// The range of at least one element. Where one is not finite, lo or hi is not finite.
Range range_of(std::span<const float> x);

/// True when both ends, hi - lo and lo + (hi - lo) are finite float32 numbers.
bool is_usable(Range range);

/// Bytes of `count` codes of `bits` bits, LSB-first, padded with zero bits to a whole byte.
constexpr size_t packed_size(size_t count, unsigned bits) { return (count * bits + 7) / 8; }

/// Uniform numbers for stochastic rounding: element i of the group stands at `first_index + i` of the
/// batch, and its number is a pure function of the keys and that index.
struct Dither {
  uint32_t key0 = 0;         ///< of the first round
  uint32_t key1 = 0;         ///< of the second round
  uint64_t first_index = 0;  ///< place in the batch of the group's element 0
};

/// Multiplies the upper half of the 64-bit index into the key of the second round.
constexpr uint32_t kDitherHighFactor = 0x9e3779b9;

/// A bijection of 32 bits with low bias (constants: C. Wellons, "Prospecting for hash functions", 2018).
constexpr uint32_t lowbias32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352d;
  x ^= x >> 15;
  x *= 0x846ca68b;
  return x ^ (x >> 16);
}

/// 32 uniform bits for an index of the batch.
constexpr uint32_t draw_at(Dither dither, uint64_t index) {
  const auto high = static_cast<uint32_t>(index >> 32);
  const uint32_t first = lowbias32(static_cast<uint32_t>(index) ^ dither.key0);
  return lowbias32(first + dither.key1 + high * kDitherHighFactor);
}

/// Uniform in [0, 1) with 24 bits, from those of draw_at().
constexpr float dither_at(Dither dither, uint64_t index) {
  return static_cast<float>(static_cast<int32_t>(draw_at(dither, index) >> 8)) * 0x1p-24F;
}

/// Uniform quantisation with min-max scaling (paper, section 2.2): writes
/// q = round_half_even(((x - lo) / (hi - lo)) * L), L = 2^bits - 1, as packed codes; hi == lo gives zeros.
/// float32 in the order written. Requires lo <= x <= hi for every element, a usable range, 1 <= bits <= 8 and
/// out.size() == packed_size(x.size(), bits).
///
/// Returns range_of(next), or {0, 0} where that is empty. Quantising from the cache leaves time to bring from
/// memory what is to be quantised next, so both in one pass take little more than the one that takes longer.
Range quantise(std::span<const float> x, Range range, unsigned bits, std::span<std::byte> out,
               std::span<const float> next = {});

/// The same with t = ((x - lo) / (hi - lo)) * L rounded up where dither < t - floor(t), else down. The
/// expectation of q is t, to within 2^-24.
Range quantise_stochastic(std::span<const float> x, Range range, unsigned bits, Dither dither,
                          std::span<std::byte> out, std::span<const float> next = {});

/// Writes lo + (q / L) * (hi - lo), float32 in the order written. The same requirements on range, bits
/// and sizes; the padding bits are ignored.
void dequantise(std::span<const std::byte> in, Range range, unsigned bits, std::span<float> out);

}  // namespace strait::kernels
