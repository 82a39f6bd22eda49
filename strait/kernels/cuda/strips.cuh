#pragma once

#include <cub/block/block_scan.cuh>

#include "strait/kernels/cuda/device.cuh"
#include "strait/kernels/cuda/groups.h"

// Rows of any length in strips, one for a warp, which reads it in rounds of an octet a lane. What the strips of
// a row count is added up by a launch of its own, so that no strip waits for another one.

namespace strait::kernels::cuda {

constexpr uint32_t kRounds = 8;
constexpr uint32_t kRoundItems = kLanes * kOctet;        // elements
constexpr uint32_t kStripItems = kRounds * kRoundItems;  // elements of a strip

constexpr uint64_t strips_of(uint64_t n) { return (n + kStripItems - 1) / kStripItems; }

inline __device__ uint32_t lane_number() { return threadIdx.x % kLanes; }

/// The strip of this warp.
struct Strip {
  uint32_t number;  ///< among those of all rows
  uint32_t row;
  uint32_t begin;  ///< its first element, in the row
  uint32_t n;      ///< elements of the row

  __device__ Strip(const WholeDivision& strips_a_row, uint64_t row_size)
      : number(static_cast<uint32_t>(thread_number() / kLanes)),
        row(strips_a_row.of(number)),
        begin((number - row * strips_a_row.by()) * kStripItems),
        n(static_cast<uint32_t>(row_size)) {}
  /// The first element of this lane's octet of a round, in the row.
  __device__ uint32_t at(uint32_t round) const { return begin + round * kRoundItems + lane_number() * kOctet; }
  /// How many elements that octet has.
  __device__ uint32_t count(uint32_t round) const { return octet_size(at(round), n); }
  /// Elements of an octet that begins at `at` of n elements.
  static __device__ uint32_t octet_size(uint32_t at, uint32_t n) {
    return at < n ? least_of(n - at, kOctet) : 0;
  }
};

/// The sum of what all lanes of the warp give.
inline __device__ uint32_t of_all_lanes(uint32_t own) {
  for (int step = kLanes / 2; step > 0; step /= 2) own += __shfl_xor_sync(kAllLanes, own, step);
  return own;
}

/// The sum of what the lanes before this one give, and in `total` that of all.
inline __device__ uint32_t before_lane(uint32_t own, uint32_t& total) {
  uint32_t sum = own;
#pragma unroll
  for (uint32_t step = 1; step < kLanes; step *= 2) {
    const uint32_t other = __shfl_up_sync(kAllLanes, sum, step);
    if (lane_number() >= step) sum += other;
  }
  total = __shfl_sync(kAllLanes, sum, kLanes - 1);
  return sum - own;
}

/// Puts the sum of those before it in the place of each of a row's counts; all threads of a block call it and
/// get the sum of all.
inline __device__ uint64_t add_up_row(uint64_t* counts, uint32_t size) {
  constexpr uint32_t kItems = 4;  // of a thread
  using Scan = cub::BlockScan<uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ uint64_t sum_so_far;
  uint64_t before = 0;
  for (uint32_t begin = 0; begin < size; begin += kItems * kThreads) {
    const uint32_t first = begin + kItems * threadIdx.x;
    uint64_t own[kItems];
    uint64_t sum = 0;
    for (uint32_t i = 0; i < kItems; ++i) {
      own[i] = first + i < size ? counts[first + i] : 0;
      sum += own[i];
    }
    uint64_t earlier = 0;
    Scan(scratch).ExclusiveSum(sum, earlier);
    earlier += before;
    if (threadIdx.x + 1 == kThreads) sum_so_far = earlier + sum;
    for (uint32_t i = 0; i < kItems; ++i) {
      if (first + i < size) counts[first + i] = earlier;
      earlier += own[i];
    }
    __syncthreads();
    before = sum_so_far;
    __syncthreads();
  }
  return before;
}

}  // namespace strait::kernels::cuda
