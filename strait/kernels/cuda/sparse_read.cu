#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/sparse.h"
#include "strait/kernels/cuda/tiles.cuh"

namespace strait::kernels::cuda {
namespace {

/// A message and where it goes.
struct Reading {
  const uint8_t* bitmaps;
  const void* values;
  ValueType type;
  SparseRows shape;
  Placing placing;
  float* out;
  uint64_t* words;  ///< a tile's, for look_back(); all 0 before
  uint32_t* ticket;
  uint32_t* faults;
};

/// The byte of the bitmap that a lane holds for its warp's elements.
__device__ uint32_t byte_of(const Reading& work, const Tile& tile) {
  const uint64_t byte = tile.begin / 8 + threadIdx.x % kLanes;
  if (byte >= work.shape.bitmap_bytes()) return 0;
  const uint32_t bits = work.bitmaps[tile.row * work.shape.bitmap_bytes() + byte];
  if (byte == tile.n / 8 && bits >> tile.n % 8 != 0) raise(work.faults, kNotAMessage);
  return bits;
}

/// The value at a position of the list of all values.
__device__ float read_value(const Reading& work, uint64_t position) {
  const uint32_t bits = work.type == ValueType::fp32 ? static_cast<const uint32_t*>(work.values)[position]
                                                     : static_cast<const uint16_t*>(work.values)[position];
  if (!is_received(bits, work.type)) raise(work.faults, kNotAMessage);
  return value_of(bits, work.type);
}

/// Puts an element to its place; `value` is +0 where it is not kept.
__device__ void place(const Reading& work, bool is_kept, float value, uint64_t index) {
  if (work.placing == Placing::scatter) {
    work.out[index] = value;
  } else if (is_kept) {
    const float sum = work.out[index] + value;
    if (!is_finite(sum)) raise(work.faults, kPastFloat);
    work.out[index] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) read_tiles(Reading work, uint32_t tiles_a_row) {
  __shared__ uint64_t scratch[kWarps];
  const uint32_t number = next_tile(work.ticket);
  const Tile tile(number / tiles_a_row, number % tiles_a_row, work.shape.n);
  const uint32_t lane = threadIdx.x % kLanes;
  const uint32_t byte = byte_of(work, tile);
  uint32_t count = __popc(byte);
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) count += __shfl_xor_sync(kAllLanes, count, step);
  uint64_t total = 0;
  const uint64_t before = before_warp(count, scratch, total);
  const uint64_t earlier = before_tile(work.words + tile.row * tiles_a_row, tile.number, total);
  if (threadIdx.x == 0 && tile.number + 1 == tiles_a_row && earlier + total != work.shape.k) {
    raise(work.faults, kNotAMessage);
  }
  uint64_t position = earlier + before;
#pragma unroll
  for (uint32_t step = 0; step < kSteps; ++step) {
    const uint32_t own = __shfl_sync(kAllLanes, byte, static_cast<int>(step * 4 + lane / 8)) >> lane % 8 & 1;
    const uint32_t word = __ballot_sync(kAllLanes, own != 0);
    const uint64_t at = position + __popc(word & lanes_before());
    // More ones than values are no message, which the last tile says.
    const bool is_kept = own != 0 && at < work.shape.k;
    if (tile.at(step) < tile.n) {
      const float value = is_kept ? read_value(work, tile.row * work.shape.k + at) : 0.0F;
      place(work, is_kept, value, tile.row * tile.n + tile.at(step));
    }
    position += __popc(word);
  }
}

}  // namespace

size_t SparseRows::read_workspace() const { return rows * tiles_of(n) * sizeof(uint64_t) + sizeof(uint32_t); }

void read_sparse(const uint8_t* bitmaps, const void* values, ValueType type, const SparseRows& shape,
                 Placing placing, float* out, void* workspace, uint32_t* faults, Stream stream) {
  const auto tiles = static_cast<uint32_t>(tiles_of(shape.n));
  auto* const words = static_cast<uint64_t*>(workspace);
  auto* const ticket = reinterpret_cast<uint32_t*>(words + shape.rows * tiles);
  clear(workspace, shape.read_workspace(), stream);
  const Reading work{bitmaps, values, type, shape, placing, out, words, ticket, faults};
  launch(read_tiles, shape.rows * tiles * kThreads, stream, work, tiles);
}

}  // namespace strait::kernels::cuda
