#include "strait/kernels/cuda/long_rows.cuh"
#include "strait/kernels/cuda/selecting.cuh"

namespace strait::kernels::cuda {
namespace {

constexpr uint64_t kShortRow = 16384;  // elements, 64 KiB

/// A short row from its first read to its last: it fits the first-level cache, and comes from memory once.
template <Feedback feedback, ValueType type>
__global__ void __launch_bounds__(kThreads) write_short_rows(Selecting work) {
  constexpr Digits kAll;
  __shared__ uint32_t bins[kMostBins];
  __shared__ Counts of_warps[kWarps];
  const uint64_t row = blockIdx.x;
  const auto n = static_cast<uint32_t>(work.shape.n);
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  Threshold threshold{kAll.low, static_cast<uint32_t>(work.shape.k)};
  for (uint32_t digit = 0; digit < kDigits; ++digit) {
    for (uint32_t begin = 0; begin < n; begin += kThreads * kOctet) {
      const uint32_t at = begin + threadIdx.x * kOctet;
      const uint32_t count = Strip::octet_size(at, n);
      float terms[kOctet];
      if (digit == 0) {
        load_first_terms<feedback>(work, row * n + at, count, terms);
      } else {
        load_octet(work.terms_in + row * n + at, count, terms);
      }
      count_digits(terms, count, kAll, digit, threshold, bins);
    }
    __syncthreads();
    threshold = find_digit(bins, kAll, digit, threshold);
  }
  Counts before;
  for (uint32_t begin = 0; begin < n; begin += kThreads * kOctet) {
    const uint32_t at = begin + threadIdx.x * kOctet;
    const uint32_t count = Strip::octet_size(at, n);
    float terms[kOctet];
    load_octet(work.terms_in + row * n + at, count, terms);
    const Votes votes(terms, count, threshold);
    uint32_t of_warp = 0;
    const uint32_t in_warp = before_lane(votes.counts(), of_warp);
    if (lane_number() == 0) of_warps[threadIdx.x / kLanes] = Votes::unpacked(of_warp);
    __syncthreads();
    Counts own = before.then(Votes::unpacked(in_warp));
    for (uint32_t warp = 0; warp < kWarps; ++warp) {
      if (warp < threadIdx.x / kLanes) own = own.then(of_warps[warp]);
      before = before.then(of_warps[warp]);
    }
    __syncthreads();
    write_octet<feedback, type>(work, terms, count, row, at, votes, threshold, own);
  }
}

template <Feedback feedback, ValueType type>
void select(const Selecting& work, void* workspace, Stream stream) {
  if (work.shape.n > kShortRow) return select_of_long_rows<feedback, type>(work, workspace, stream);
  launch(write_short_rows<feedback, type>, work.shape.rows * kThreads, stream, work);
}

template <Feedback feedback>
void select(const Selecting& work, ValueType type, void* workspace, Stream stream) {
  switch (type) {
    case ValueType::fp32:
      return select<feedback, ValueType::fp32>(work, workspace, stream);
    case ValueType::fp16:
      return select<feedback, ValueType::fp16>(work, workspace, stream);
    case ValueType::bf16:
      return select<feedback, ValueType::bf16>(work, workspace, stream);
  }
}

}  // namespace

size_t SparseRows::select_workspace() const { return n <= kShortRow ? 0 : Workspace::bytes(*this); }

void write_largest(const float* x, FeedbackState feedback, float* terms, const SparseRows& shape,
                   ValueType type, uint8_t* bitmaps, void* values, void* workspace, uint32_t* faults,
                   Stream stream) {
  const auto work = [&](float* out) {
    return Selecting{x, feedback.state, out == nullptr ? x : out, out, shape, bitmaps, values, faults};
  };
  switch (feedback.kind) {
    case Feedback::none:
      return select<Feedback::none>(work(nullptr), type, workspace, stream);
    case Feedback::ef:  // the state becomes the sums, of which those that are sent are then taken
      return select<Feedback::ef>(work(feedback.state), type, workspace, stream);
    case Feedback::ef21:
      return select<Feedback::ef21>(work(terms), type, workspace, stream);
  }
}

}  // namespace strait::kernels::cuda
