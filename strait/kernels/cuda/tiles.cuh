#pragma once

#include "strait/kernels/cuda/device.cuh"

// Rows of any length in tiles, one for a block of threads, which need to know what the tiles before them have
// counted (decoupled look-back: Merrill and Garland, "Single-pass parallel prefix scan with decoupled
// look-back", 2016).
//
// A warp has kWarpItems elements that follow each other, and in step i its lanes have 32 that do: their votes
// are a word of a bitmap.

namespace strait::kernels::cuda {

constexpr uint32_t kSteps = 8;                      // elements of a thread
constexpr uint32_t kWarpItems = kLanes * kSteps;    // elements of a warp
constexpr uint32_t kTileItems = kThreads * kSteps;  // elements of a tile

constexpr uint64_t tiles_of(uint64_t n) { return (n + kTileItems - 1) / kTileItems; }

/// A tile of a row, and the elements of this warp.
struct Tile {
  uint64_t row;
  uint64_t number;  ///< in the row
  uint64_t begin;   ///< of the warp's elements, in the row
  uint64_t n;       ///< elements of the row

  __device__ Tile(uint64_t of_row, uint64_t number_in_row, uint64_t size)
      : row(of_row),
        number(number_in_row),
        begin(number_in_row * kTileItems + threadIdx.x / kLanes * kWarpItems),
        n(size) {}
  /// The place in the row of this lane's element of a step.
  __device__ uint64_t at(uint32_t step) const { return begin + step * kLanes + threadIdx.x % kLanes; }
};

/// Lanes before this one.
inline __device__ uint32_t lanes_before() { return (1U << threadIdx.x % kLanes) - 1; }

/// A tile's number, in the order in which blocks of threads begin, so that those before it do not wait for it.
inline __device__ uint32_t next_tile(uint32_t* ticket) {
  __shared__ uint32_t tile;
  if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  return tile;
}

/// What the warps before this one of the block have counted, and in `total` what all have. `scratch` has
/// kWarps.
inline __device__ uint64_t before_warp(uint64_t of_warp, uint64_t* scratch, uint64_t& total) {
  if (threadIdx.x % kLanes == 0) scratch[threadIdx.x / kLanes] = of_warp;
  __syncthreads();
  uint64_t before = 0;
  total = 0;
#pragma unroll
  for (uint32_t warp = 0; warp < kWarps; ++warp) {
    if (warp == threadIdx.x / kLanes) before = total;
    total += scratch[warp];
  }
  __syncthreads();
  return before;
}

// A tile's word says what is known of it: 0, nothing; its own count; or what it and all before it in the row
// count.
constexpr uint64_t kOwnCount = uint64_t{1} << 62;
constexpr uint64_t kSumOfAll = uint64_t{2} << 62;
constexpr uint64_t kCountMask = (uint64_t{1} << 62) - 1;

inline __device__ void publish(uint64_t* word, uint64_t value) {
  atomicExch(reinterpret_cast<unsigned long long*>(word), value);
}

/// What the tiles before number `number` of a row count, whose words begin at `words`, and which are all 0
/// before the launch. Called by the first warp; publishes what the tile counts, `own`. Flag and count are one
/// word, which is written at once, so that no fence is needed.
inline __device__ uint64_t look_back(uint64_t* words, uint64_t number, uint64_t own) {
  const uint32_t lane = threadIdx.x % kLanes;
  if (lane == 0) publish(words + number, (number == 0 ? kSumOfAll : kOwnCount) | own);
  if (number == 0) return 0;
  uint64_t before = 0;
  for (uint64_t end = number; end > 0; end -= least_of<uint64_t>(end, kLanes)) {
    uint64_t word = kSumOfAll;  // before the row's first tile: nothing
    if (lane < end) {
      do {
        word = *const_cast<volatile uint64_t*>(words + (end - 1 - lane));
      } while (word >> 62 == 0);
    }
    // Nearest first: the lanes up to the first one whose word is a sum of all.
    const uint32_t sums = __ballot_sync(kAllLanes, word >> 62 == 2);
    const uint32_t last = sums == 0 ? kLanes - 1 : static_cast<uint32_t>(__ffs(static_cast<int>(sums))) - 1;
    uint64_t part = lane <= last ? word & kCountMask : 0;
#pragma unroll
    for (int step = kLanes / 2; step > 0; step /= 2) part += __shfl_xor_sync(kAllLanes, part, step);
    before += part;
    if (sums != 0) break;
  }
  if (lane == 0) publish(words + number, kSumOfAll | (before + own));
  return before;
}

/// look_back() for a block of threads, all of which get what it gives.
inline __device__ uint64_t before_tile(uint64_t* words, uint64_t number, uint64_t own) {
  __shared__ uint64_t before;
  if (threadIdx.x < kLanes) {
    const uint64_t sum = look_back(words, number, own);
    if (threadIdx.x == 0) before = sum;
  }
  __syncthreads();
  return before;
}

}  // namespace strait::kernels::cuda
