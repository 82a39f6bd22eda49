#pragma once

#include <type_traits>

#include "strait/kernels/cuda/feedback_arithmetic.h"
#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/select_arithmetic.h"
#include "strait/kernels/cuda/sparse.h"
#include "strait/kernels/cuda/strips.cuh"

// What write_largest() does with an octet of a lane, of short rows and of long ones.

namespace strait::kernels::cuda {

/// Where a message comes from and goes to.
struct Selecting {
  const float* x;
  float* state;  ///< null without feedback
  const float* terms_in;
  /// What is encoded, where it is not x: written when x is first read. With ef this is the state.
  float* terms;
  SparseRows shape;
  uint8_t* bitmaps;
  void* values;
  uint32_t* faults;
};

/// The terms of an octet that begins at `index` of the message; with feedback also to where they are looked
/// for later. Those behind `count` are 0.
template <Feedback feedback>
__device__ void load_first_terms(const Selecting& work, uint64_t index, uint32_t count,
                                 float (&terms)[kOctet]) {
  load_octet(work.x + index, count, terms);
  if constexpr (feedback != Feedback::none) {
    float state[kOctet];
    load_octet(work.state + index, count, state);
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) terms[i] = term_of<feedback>(terms[i], state[i]);
    store_octet(terms, count, work.terms + index);
  }
}

/// Bits 0 to count - 1.
inline __device__ uint32_t first_bits(uint32_t count) { return (1U << count) - 1; }

/// Adds the digit's values among an octet's terms that agree with the digits before to `bins` in shared memory.
/// Zeros, of which a tensor behind a ReLU has many, are counted by a vote, not one by one in the same place.
/// All lanes of a warp call it.
inline __device__ void count_digits(const float (&terms)[kOctet], uint32_t count, const Digits& digits,
                                    uint32_t digit, Threshold threshold, uint32_t* bins) {
  uint32_t zeros = 0;
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) {
    const uint32_t magnitude = magnitude_bits(terms[i]);
    const bool counts = i < count && threshold.is_candidate(magnitude, digits, digit);
    const uint32_t value = digits.value(magnitude, digit);
    zeros += __popc(__ballot_sync(kAllLanes, counts && value == 0));
    if (counts && value != 0) atomicAdd(bins + value, 1);
  }
  if (lane_number() == 0 && zeros != 0) atomicAdd(bins, zeros);
}

/// What is known of a row behind a digit whose values are counted in `bins`, which become 0. All threads get
/// it.
inline __device__ Threshold find_digit(uint32_t* bins, const Digits& digits, uint32_t digit,
                                       Threshold threshold) {
  constexpr uint32_t kBinsAThread = kMostBins / kThreads;
  using Scan = cub::BlockScan<uint32_t, kThreads>;
  __shared__ typename Scan::TempStorage scratch;
  __shared__ Threshold found;
  // A thread has values that follow each other, from the largest downwards.
  const uint32_t largest = kMostBins - 1 - threadIdx.x * kBinsAThread;
  uint32_t counts[kBinsAThread];
  uint32_t sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < kBinsAThread; ++i) {
    counts[i] = bins[largest - i];
    bins[largest - i] = 0;
    sum += counts[i];
  }
  uint32_t above = 0;
  Scan(scratch).ExclusiveSum(sum, above);
#pragma unroll
  for (uint32_t i = 0; i < kBinsAThread; ++i) {
    if (above < threshold.wanted && threshold.wanted <= above + counts[i]) {
      found = threshold.behind(digits, digit, largest - i, above);
    }
    above += counts[i];
  }
  __syncthreads();
  const Threshold behind = found;
  __syncthreads();
  return behind;
}

/// Which elements of an octet are above the threshold and which equal it, a bit each.
struct Votes {
  uint32_t above = 0;
  uint32_t equal = 0;

  __device__ Votes(const float (&terms)[kOctet], uint32_t count, Threshold threshold) {
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      const uint32_t magnitude = magnitude_bits(terms[i]);
      above |= (magnitude > threshold.magnitude ? 1U : 0U) << i;
      equal |= (magnitude == threshold.magnitude ? 1U : 0U) << i;
    }
    above &= first_bits(count);
    equal &= first_bits(count);
  }
  /// How many there are of both, in one number that the sum of a few thousand octets fits.
  __device__ uint32_t counts() const { return __popc(above) | __popc(equal) << 16; }
  /// The same of such a sum.
  static __device__ Counts unpacked(uint32_t counts) { return Counts::of(counts & 0xffff, counts >> 16); }
  /// Which elements are kept where `equal_before` of lower index have the threshold's magnitude.
  __device__ uint32_t kept(uint32_t equal_before, Threshold threshold) const {
    uint32_t kept = above;
    uint32_t left = equal;
    for (uint32_t i = equal_before; left != 0 && i < threshold.wanted; ++i) {
      kept |= left & (0 - left);
      left &= left - 1;
    }
    return kept;
  }
};

/// Writes the bitmap and the values of an octet that begins at `at` of a row, before which so many of the row
/// are counted, and the state behind them.
template <Feedback feedback, ValueType type>
__device__ void write_octet(const Selecting& work, const float (&terms)[kOctet], uint32_t count, uint64_t row,
                            uint32_t at, const Votes& votes, Threshold threshold, Counts before) {
  using Bits = std::conditional_t<type == ValueType::fp32, uint32_t, uint16_t>;
  if (count == 0) return;
  const uint32_t kept = votes.kept(before.equal(), threshold);
  work.bitmaps[row * work.shape.bitmap_bytes() + at / kOctet] = static_cast<uint8_t>(kept);
  if (kept == 0) return;
  Bits* value = static_cast<Bits*>(work.values) + row * work.shape.k + before.kept(threshold.wanted);
  const uint64_t index = row * work.shape.n + at;
  float state[kOctet] = {};
  if constexpr (feedback == Feedback::ef21) load_octet(work.state + index, count, state);
  bool can_be_sent = true;
  AllFinite sent;
  AllFinite states;
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) {
    if constexpr (feedback == Feedback::ef) state[i] = terms[i];
    if ((kept >> i & 1) == 0) continue;
    const uint32_t bits = value_bits(terms[i], type);
    *value++ = static_cast<Bits>(bits);
    sent.see(terms[i]);
    if constexpr (type != ValueType::fp32) can_be_sent &= is_sendable(terms[i], type);
    if constexpr (feedback != Feedback::none) {
      state[i] = state_after<feedback>(terms[i], value_of(bits, type), state[i]);
      states.see(state[i]);
    }
  }
  if (!can_be_sent || !sent.are()) raise(work.faults, kNotSendable);
  if constexpr (feedback != Feedback::none) {
    if (!states.are()) raise(work.faults, kPastFloat);
    store_octet(state, count, work.state + index);
  }
}

}  // namespace strait::kernels::cuda
