#pragma once

#include <cstdint>
#include <cstring>
#include <functional>

// Runs the threads of CUDA kernels on the CPU, so that their loops, indices, votes and sums are tested where
// there is no GPU: each thread of a block is a fiber, and a thread that waits for others hands on to the next
// one. Blocks run one behind the other.
//
// Not covered: what comes of threads or blocks that really run at a time (races, waiting for another block, the
// order in which memory changes), nvcc's own code, misaligned accesses, and speed.

namespace strait::emulation {

/// As CUDA's threadIdx and blockIdx, of one dimension.
struct Index {
  uint32_t x;
};
Index thread_index();
Index block_index();

/// Calls `kernel` for every thread of so many blocks. A block has whole warps, at most 256 threads.
void run(uint32_t blocks, uint32_t threads, const std::function<void()>& kernel);

/// __syncthreads(): waits for all threads of the block that have not returned.
void wait_for_block();

/// This thread's place in its warp of 32, all of which have to call what follows.
inline uint32_t lane() { return thread_index().x % 32; }

/// What the lane gives, which takes its value modulo 32.
uint64_t bits_of_lane(uint64_t bits, uint32_t of);

/// The same of any value of up to 8 bytes.
template <class Value>
Value value_of_lane(Value value, uint32_t of) {
  static_assert(sizeof(Value) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(Value));
  bits = bits_of_lane(bits, of);
  std::memcpy(&value, &bits, sizeof(Value));
  return value;
}

/// Bit i is lane i's vote.
uint32_t votes(bool vote);

}  // namespace strait::emulation
