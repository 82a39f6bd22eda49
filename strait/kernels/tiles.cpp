#include "strait/kernels/tiles.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "strait/kernels/half.h"
#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/tiles.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/codes-inl.h"
#include "strait/kernels/dispatch.h"

// Where the intrinsics are not needed, plain loops, which the compiler turns into the target's vector
// instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;

constexpr size_t kTiles = kBlock / kTile;  // of a block of codes
constexpr size_t kRangeBytes = 2 * sizeof(uint16_t);

/// Least value and step of each tile of a block.
using Ranges = std::array<float, 2 * kTiles>;

HWY_INLINE uint32_t largest_of(const float* tile) {
  uint32_t largest = 0;
  for (size_t i = 0; i < kTile; ++i) largest = std::max(largest, std::bit_cast<uint32_t>(tile[i]) & 0x7fffffff);
  return largest;
}

/// The pivot's place, or kNoPivot. `largest` is that of the tile.
HWY_INLINE uint8_t pivot_of(const float* tile, float largest, float factor) {
  // A product keeps the order of what is multiplied, so that the second largest need not be found.
  uint32_t rivals = 0;
  for (size_t i = 0; i < kTile; ++i) rivals += factor * std::fabs(tile[i]) > largest ? 1 : 0;
  const uint32_t itself = factor * largest > largest ? 1 : 0;
  if (rivals > itself || !(largest > 0)) return kNoPivot;
  size_t place = 0;
  while (std::fabs(tile[place]) != largest) ++place;
  return static_cast<uint8_t>(place);
}

/// Adding +0 turns -0 into +0 and changes nothing else, so that it does not matter which zero is found.
HWY_INLINE void write_range(const float* tile, float levels, float* range) {
  constexpr size_t kLanes = HWY_LANES(float);
  auto least = hn::LoadU(Floats(), tile);
  auto greatest = least;
  for (size_t i = kLanes; i < kTile; i += kLanes) {
    const auto values = hn::LoadU(Floats(), tile + i);
    least = hn::Min(least, values);
    greatest = hn::Max(greatest, values);
  }
  range[0] = hn::GetLane(hn::MinOfLanes(Floats(), least)) + 0.0F;
  range[1] = (hn::GetLane(hn::MaxOfLanes(Floats(), greatest)) + 0.0F - range[0]) / levels;
}

HWY_INLINE void write_codes(const float* tile, const float* range, float levels, uint8_t* codes) {
  const float least = range[0];
  const float divisor = range[1] == 0 ? 1.0F : range[1];
  const float most = range[1] == 0 ? 0.0F : levels;
  for (size_t i = 0; i < kTile; ++i) {
    const float t = (tile[i] - least) / divisor;
    const float above = t > 0 ? t : 0.0F;
    const float within = above < most ? above : most;
    // In [2^23, 2^24) floats are integers: adding rounds half to even.
    codes[i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(within + 0x1p23F));
  }
}

}  // namespace

TileExtremes encode_tiles(std::span<const float> x, float factor, unsigned bits, std::span<uint8_t> pivots,
                          std::span<std::byte> ranges, std::span<std::byte> codes) {
  const auto levels = static_cast<float>((1U << bits) - 1);
  const PackBlock pack_block = packer_of(bits);
  TileExtremes extremes;
  alignas(64) std::array<float, kBlock> values;
  alignas(64) Codes block_codes;
  Ranges block_ranges;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, x.size() - begin);
    const size_t first = begin / kTile;
    for (size_t i = 0; i < count; i += 16) prefetch(x.data() + begin + i + kAhead);
    std::copy_n(x.data() + begin, count, values.data());
    for (size_t i = 0; i < count / kTile; ++i) {
      float* const tile = values.data() + i * kTile;
      const uint32_t largest = largest_of(tile);
      extremes.element = std::max(extremes.element, largest);
      const uint8_t pivot =
          largest < kInfinityBits ? pivot_of(tile, std::bit_cast<float>(largest), factor) : kNoPivot;
      pivots[first + i] = pivot;
      if (pivot != kNoPivot) {
        std::swap(tile[0], tile[pivot]);
        rotate({tile, kTile}, 0, {tile, kTile});
      }
      write_range(tile, levels, block_ranges.data() + 2 * i);
    }
    const auto numbers = std::span(block_ranges).first(2 * count / kTile);
    const auto out = ranges.subspan(first * kRangeBytes, numbers.size() / 2 * kRangeBytes);
    extremes.range = std::max(extremes.range, kernels::to_fp16(numbers, out));
    kernels::from_fp16(out, numbers);
    for (size_t i = 0; i < count / kTile; ++i) {
      write_codes(values.data() + i * kTile, block_ranges.data() + 2 * i, levels,
                  block_codes.data() + i * kTile);
    }
    pack_block(block_codes, count, codes.data() + begin / 8 * bits);
  }
  return extremes;
}

bool decode_tiles(std::span<const uint8_t> pivots, std::span<const std::byte> ranges,
                  std::span<const std::byte> codes, unsigned bits, std::span<float> out) {
  const UnpackBlock unpack_block = unpacker_of(bits);
  alignas(64) Codes block_codes;
  Ranges block_ranges;
  bool is_valid = true;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, out.size() - begin);
    const size_t first = begin / kTile;
    for (size_t i = 0; i < count; i += 16) prefetch(out.data() + begin + i + kAhead);
    unpack_block(codes.data() + begin / 8 * bits, count, block_codes);
    const auto numbers = std::span(block_ranges).first(2 * count / kTile);
    kernels::from_fp16(ranges.subspan(first * kRangeBytes, numbers.size() / 2 * kRangeBytes), numbers);
    for (size_t i = 0; i < count / kTile; ++i) {
      const uint8_t* const from = block_codes.data() + i * kTile;
      float* const tile = out.data() + begin + i * kTile;
      const float least = block_ranges[2 * i];
      const float step = block_ranges[2 * i + 1];
      if (step == 0)
        is_valid = is_valid && std::all_of(from, from + kTile, [](uint8_t code) { return code == 0; });
      for (size_t k = 0; k < kTile; ++k) tile[k] = least + static_cast<float>(from[k]) * step;
      const uint8_t pivot = pivots[first + i];
      if (pivot == kNoPivot) continue;
      rotate_back({tile, kTile}, 0, {tile, kTile});
      std::swap(tile[0], tile[pivot]);
    }
  }
  return is_valid;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(encode_tiles);
HWY_EXPORT(decode_tiles);

TileExtremes encode_tiles(std::span<const float> x, float factor, unsigned bits, std::span<uint8_t> pivots,
                          std::span<std::byte> ranges, std::span<std::byte> codes) {
  return STRAIT_KERNEL(encode_tiles)(x, factor, bits, pivots, ranges, codes);
}

bool decode_tiles(std::span<const uint8_t> pivots, std::span<const std::byte> ranges,
                  std::span<const std::byte> codes, unsigned bits, std::span<float> out) {
  return STRAIT_KERNEL(decode_tiles)(pivots, ranges, codes, bits, out);
}

}  // namespace strait::kernels
#endif
