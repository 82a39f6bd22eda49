#include <type_traits>

#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/sparse.h"
#include "strait/kernels/cuda/strips.cuh"

// The ones of each strip are counted, then added up, and then values come to their places: the bitmap, which
// takes a small part of the time, is read twice, so that no strip waits for those before it.

namespace strait::kernels::cuda {
namespace {

/// A message and where it goes.
struct Reading {
  const uint8_t* bitmaps;
  const void* values;
  SparseRows shape;
  WholeDivision strips_a_row;
  float* out;
  uint64_t* counts;  ///< a strip's
  uint32_t* faults;

  __device__ bool has(const Strip& strip) const { return strip.row < shape.rows; }
  __device__ const uint8_t* bitmap(uint64_t row) const { return bitmaps + row * shape.bitmap_bytes(); }
};

__global__ void __launch_bounds__(kThreads) count_ones(Reading work) {
  const Strip strip(work.strips_a_row, work.shape.n);
  if (!work.has(strip)) return;
  // A lane has as many bytes of the bitmap, side by side, as there are rounds.
  const uint32_t byte = strip.begin / kOctet + lane_number() * kRounds;
  const auto end = static_cast<uint32_t>(work.shape.bitmap_bytes());
  const uint32_t bytes = byte < end ? least_of(end - byte, kRounds) : 0;
  const uint64_t bits = load_bytes(work.bitmap(strip.row) + byte, bytes);
  const uint32_t elements = bytes == 0 ? 0 : strip.n - byte * kOctet;
  if (elements < 64 && bits >> elements != 0) raise(work.faults, kNotAMessage);
  const uint32_t ones = of_all_lanes(__popcll(bits));
  if (lane_number() == 0) work.counts[strip.number] = ones;
}

__global__ void __launch_bounds__(kThreads) add_up_ones(Reading work) {
  const uint32_t strips = work.strips_a_row.by();
  const uint64_t ones = add_up_row(work.counts + uint64_t{blockIdx.x} * strips, strips);
  if (threadIdx.x == 0 && ones != work.shape.k) raise(work.faults, kNotAMessage);
}

/// As many of the ones as there are values. Where there are more ones the message is none.
__device__ uint32_t ones_with_values(uint32_t ones, uint32_t values) {
  while (__popc(ones) > values) ones &= ones - 1;
  return ones;
}

template <ValueType type, Placing placing>
__global__ void __launch_bounds__(kThreads) read_strips(Reading work) {
  using Bits = std::conditional_t<type == ValueType::fp32, uint32_t, uint16_t>;
  const Strip strip(work.strips_a_row, work.shape.n);
  if (!work.has(strip)) return;
  const auto k = static_cast<uint32_t>(work.shape.k);
  const uint8_t* const bitmap = work.bitmap(strip.row);
  const Bits* const values = static_cast<const Bits*>(work.values) + uint64_t{strip.row} * k;
  float* const row = work.out + uint64_t{strip.row} * strip.n;
  auto before = static_cast<uint32_t>(work.counts[strip.number]);
#pragma unroll 2
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t count = strip.count(round);
    uint32_t ones = count == 0 ? 0U : bitmap[strip.at(round) / kOctet];
    uint32_t of_round = 0;
    const uint32_t position = before + before_lane(__popc(ones), of_round);
    before += of_round;
    if (position + __popc(ones) > k) ones = ones_with_values(ones, position < k ? k - position : 0);
    if (placing == Placing::add && ones == 0) continue;
    const Bits* const own = values + position;
    uint32_t bits[kOctet] = {};
    uint32_t at = 0;
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {  // all loads before the first use
      if ((ones >> i & 1) != 0) bits[i] = own[at];
      at += ones >> i & 1;
    }
    float octet[kOctet] = {};
    if constexpr (placing == Placing::add) load_octet(row + strip.at(round), count, octet);
    bool is_message = true;
    AllFinite received;
    AllFinite sums;
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      const float value = value_of(bits[i], type);
      received.see(value);
      if constexpr (type == ValueType::fp16) is_message &= is_received(bits[i], type);
      if constexpr (placing == Placing::scatter) {
        octet[i] = value;
      } else if ((ones >> i & 1) != 0) {
        octet[i] += value;
        sums.see(octet[i]);
      }
    }
    if (!is_message || !received.are()) raise(work.faults, kNotAMessage);
    if (!sums.are()) raise(work.faults, kPastFloat);
    store_octet(octet, count, row + strip.at(round));
  }
}

template <ValueType type>
void launch_readers(const Reading& work, Placing placing, uint64_t threads, Stream stream) {
  if (placing == Placing::add) return launch(read_strips<type, Placing::add>, threads, stream, work);
  launch(read_strips<type, Placing::scatter>, threads, stream, work);
}

}  // namespace

size_t SparseRows::read_workspace() const { return rows * strips_of(n) * sizeof(uint64_t); }

void read_sparse(const uint8_t* bitmaps, const void* values, ValueType type, const SparseRows& shape,
                 Placing placing, float* out, void* workspace, uint32_t* faults, Stream stream) {
  const WholeDivision strips_a_row(static_cast<uint32_t>(strips_of(shape.n)));
  const Reading work{bitmaps, values, shape, strips_a_row, out, static_cast<uint64_t*>(workspace), faults};
  const uint64_t threads = shape.rows * strips_a_row.by() * kLanes;
  launch(count_ones, threads, stream, work);
  launch(add_up_ones, shape.rows * kThreads, stream, work);
  switch (type) {
    case ValueType::fp32:
      return launch_readers<ValueType::fp32>(work, placing, threads, stream);
    case ValueType::fp16:
      return launch_readers<ValueType::fp16>(work, placing, threads, stream);
    case ValueType::bf16:
      return launch_readers<ValueType::bf16>(work, placing, threads, stream);
  }
}

}  // namespace strait::kernels::cuda
