#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/kernels/hadamard.h"

namespace strait::kernels {

/// Elements of a tile.
inline constexpr size_t kTile = kRotated;

/// In the place of a pivot: there is none.
inline constexpr uint8_t kNoPivot = kTile;

// A tile whose largest magnitude is above 0 and at least `factor` times the second has a pivot, the element of
// that magnitude (the first one): it changes places with element 0, and the tile is rotated without signs
// (kernels/hadamard.h). A tile is then coded by its range, the least value and step = (greatest - least) /
// (2^bits - 1), both rounded to fp16, and by codes of `bits` bits, 1 to 8:
//   code = round_half_even((x - least) / step), kept between 0 and 2^bits - 1; 0 where step is 0
//   x    = least + code * step
// float32 in the order written. Spans hold a number of whole tiles: 64 floats, a byte for the pivot's place, a
// range of 4 bytes, and 8 * bits bytes of codes, LSB-first, for each.

/// The largest magnitudes of tiles, as float32 bits.
struct TileExtremes {
  uint32_t element = 0;  ///< of x; above infinity where one is NaN
  uint32_t range = 0;    ///< of the numbers that are rounded to fp16
};

/// Codes tiles. What is written counts only where both extremes are below what can be sent: `element` below
/// 2^121, so that nothing overflows on the way, and `range` below kFp16OverflowBits (kernels/half.h).
TileExtremes encode_tiles(std::span<const float> x, float factor, unsigned bits, std::span<uint8_t> pivots,
                          std::span<std::byte> ranges, std::span<std::byte> codes);

/// The way back. Ranges are finite, pivots at most kNoPivot. False where a code is not 0 though the step is.
bool decode_tiles(std::span<const uint8_t> pivots, std::span<const std::byte> ranges,
                  std::span<const std::byte> codes, unsigned bits, std::span<float> out);

}  // namespace strait::kernels
