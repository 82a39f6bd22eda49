#include <cub/block/block_scan.cuh>

#include "strait/kernels/cuda/feedback_arithmetic.h"
#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/select_arithmetic.h"
#include "strait/kernels/cuda/sparse.h"
#include "strait/kernels/cuda/tiles.cuh"

// A row that fits the first-level cache is a block of threads' from its first read to its last, and comes from
// memory once. The tiles of a longer one are many blocks': four launches that read it, three of which find a
// digit.

namespace strait::kernels::cuda {
namespace {

constexpr uint64_t kShortRow = 16384;  // elements, 64 KiB
constexpr uint32_t kBinsAThread = kMostBins / kThreads;

/// Where a message comes from and goes to.
struct Selecting {
  const float* x;
  float* state;  ///< null without feedback
  const float* terms_in;
  /// What is encoded, where it is not x: written with the first digit. With ef this is the state.
  float* terms;
  SparseRows shape;
  ValueType type;
  uint8_t* bitmaps;
  void* values;
  uint32_t* faults;
};

/// What tells the blocks of threads of long rows about each other; all 0 before.
struct Workspace {
  uint64_t* words;        ///< a tile's, for look_back()
  Threshold* thresholds;  ///< a row's
  uint32_t* counts;       ///< a row's, kMostBins of the digit that is looked for
  uint32_t* finished;     ///< a row's blocks of threads that have counted
  uint32_t* ticket;

  Workspace(void* memory, const SparseRows& shape) {
    words = static_cast<uint64_t*>(memory);
    thresholds = reinterpret_cast<Threshold*>(words + shape.rows * tiles_of(shape.n));
    counts = reinterpret_cast<uint32_t*>(thresholds + shape.rows);
    finished = counts + shape.rows * kMostBins;
    ticket = finished + shape.rows;
  }
};

/// The element's term; with feedback also to where the other passes look for it.
template <Feedback feedback>
__device__ float first_term(const Selecting& work, uint64_t index) {
  if constexpr (feedback == Feedback::none) {
    return work.x[index];
  } else {
    const float term = term_of<feedback>(work.x[index], work.state[index]);
    work.terms[index] = term;
    return term;
  }
}

/// Adds the digit's values among the candidates of a tile to `bins` in shared memory. Zeros, of which a tensor
/// behind a ReLU has many, are counted by a vote, not one by one in the same place.
template <Feedback feedback, bool is_first>
__device__ void count_digits(const Selecting& work, const Tile& tile, uint32_t digit, Threshold threshold,
                             uint32_t* bins) {
  float x[kSteps];
#pragma unroll
  for (uint32_t step = 0; step < kSteps; ++step) {
    const uint64_t index = tile.row * tile.n + tile.at(step);
    if (tile.at(step) >= tile.n) continue;
    if constexpr (is_first) {
      x[step] = first_term<feedback>(work, index);
    } else {
      x[step] = work.terms_in[index];
    }
  }
  uint32_t zeros = 0;
#pragma unroll
  for (uint32_t step = 0; step < kSteps; ++step) {
    const bool is_element = tile.at(step) < tile.n;
    const uint32_t magnitude = is_element ? magnitude_bits(x[step]) : 0;
    const bool counts = is_element && threshold.is_candidate(magnitude, digit);
    const uint32_t value = digit_of(magnitude, digit);
    zeros += __popc(__ballot_sync(kAllLanes, counts && value == 0));
    if (counts && value != 0) atomicAdd(bins + value, 1);
  }
  if (threadIdx.x % kLanes == 0 && zeros != 0) atomicAdd(bins, zeros);
}

/// What is known of a row behind a digit whose values are counted in `bins`, which become 0. All threads get
/// it.
__device__ Threshold find_digit(uint32_t* bins, uint32_t digit, Threshold threshold) {
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
      found = threshold.behind(digit, largest - i, above);
    }
    above += counts[i];
  }
  __syncthreads();
  const Threshold behind = found;
  __syncthreads();
  return behind;
}

/// The terms of a warp's elements of a tile, and what it counts.
struct WarpTerms {
  float term[kSteps];
  uint32_t above[kSteps];  ///< votes
  uint32_t equal[kSteps];
  uint64_t counts = 0;  ///< Counts::packed

  __device__ WarpTerms(const float* terms, const Tile& tile, Threshold threshold) {
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      term[step] = tile.at(step) < tile.n ? terms[tile.row * tile.n + tile.at(step)] : 0.0F;
    }
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      const bool is_element = tile.at(step) < tile.n;
      const uint32_t magnitude = magnitude_bits(term[step]);
      above[step] = __ballot_sync(kAllLanes, is_element && magnitude > threshold.magnitude);
      equal[step] = __ballot_sync(kAllLanes, is_element && magnitude == threshold.magnitude);
      counts += Counts::of(__popc(above[step]), __popc(equal[step])).packed;
    }
  }
};

/// Writes a kept element, and the state behind it.
template <Feedback feedback>
__device__ void keep(const Selecting& work, float term, uint64_t index, uint64_t position) {
  const uint32_t bits = value_bits(term, work.type);
  if (!is_sendable(term, work.type)) raise(work.faults, kNotSendable);
  if (work.type == ValueType::fp32) {
    static_cast<uint32_t*>(work.values)[position] = bits;
  } else {
    static_cast<uint16_t*>(work.values)[position] = static_cast<uint16_t>(bits);
  }
  if constexpr (feedback != Feedback::none) {
    const float state = feedback == Feedback::ef21 ? work.state[index] : 0.0F;
    const float next = state_after<feedback>(term, value_of(bits, work.type), state);
    if (!is_finite(next)) raise(work.faults, kPastFloat);
    work.state[index] = next;
  }
}

/// Writes the bitmap and the values of a warp's elements, of which `before` are counted earlier in the row.
template <Feedback feedback>
__device__ void write_kept(const Selecting& work, const WarpTerms& terms, const Tile& tile, Threshold threshold,
                           Counts before) {
  const uint32_t lane = threadIdx.x % kLanes;
  uint32_t own_word = 0;  // of the step from which this lane's byte of the bitmap comes
#pragma unroll
  for (uint32_t step = 0; step < kSteps; ++step) {
    const uint32_t equal_before = before.equal() + __popc(terms.equal[step] & lanes_before());
    const bool is_kept =
        tile.at(step) < tile.n && threshold.keeps(magnitude_bits(terms.term[step]), equal_before);
    const uint32_t word = __ballot_sync(kAllLanes, is_kept);
    if (lane / 4 == step) own_word = word;
    if (is_kept) {
      const uint64_t position =
          tile.row * work.shape.k + before.kept(threshold.wanted) + __popc(word & lanes_before());
      keep<feedback>(work, terms.term[step], tile.row * tile.n + tile.at(step), position);
    }
    before.packed += Counts::of(__popc(terms.above[step]), __popc(terms.equal[step])).packed;
  }
  const uint64_t byte = tile.begin / 8 + lane;
  if (byte < work.shape.bitmap_bytes()) {
    work.bitmaps[tile.row * work.shape.bitmap_bytes() + byte] =
        static_cast<uint8_t>(own_word >> (lane % 4 * 8));
  }
}

/// A short row from its first read to its last.
template <Feedback feedback>
__global__ void __launch_bounds__(kThreads) write_short_rows(Selecting work, uint32_t tiles) {
  __shared__ uint32_t bins[kMostBins];
  __shared__ uint64_t scratch[kWarps];
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  Threshold threshold{0, static_cast<uint32_t>(work.shape.k)};
  for (uint32_t digit = 0; digit < kDigits; ++digit) {
    for (uint32_t i = 0; i < tiles; ++i) {
      const Tile tile(blockIdx.x, i, work.shape.n);
      if (digit == 0) {
        count_digits<feedback, true>(work, tile, digit, threshold, bins);
      } else {
        count_digits<feedback, false>(work, tile, digit, threshold, bins);
      }
    }
    __syncthreads();
    threshold = find_digit(bins, digit, threshold);
  }
  Counts before_tile;
  for (uint32_t i = 0; i < tiles; ++i) {
    const Tile tile(blockIdx.x, i, work.shape.n);
    const WarpTerms terms(work.terms_in, tile, threshold);
    uint64_t total = 0;
    const uint64_t before = before_tile.packed + before_warp(terms.counts, scratch, total);
    write_kept<feedback>(work, terms, tile, threshold, Counts{before});
    before_tile.packed += total;
  }
}

/// Whether this block of threads is the last one of `blocks` to come here with `finished`, which is 0 before
/// and after. What the others have written is there then for those who read past the first-level cache.
__device__ bool is_last(uint32_t* finished, uint32_t blocks) {
  __shared__ bool result;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    result = atomicAdd(finished, 1) + 1 == blocks;
    if (result) *finished = 0;
    __threadfence();
  }
  __syncthreads();
  return result;
}

/// Counts the digit's values in some tiles of a long row, `tiles` or, in the row's last part, fewer. The last
/// block of a row finds the digit.
template <Feedback feedback, bool is_first>
__global__ void __launch_bounds__(kThreads)
    count_tiles(Selecting work, Workspace workspace, uint32_t tiles_a_row, uint32_t tiles, uint32_t digit) {
  __shared__ uint32_t bins[kMostBins];
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  const uint32_t parts = (tiles_a_row + tiles - 1) / tiles;
  const uint32_t row = blockIdx.x / parts;
  const uint32_t first = (blockIdx.x - row * parts) * tiles;
  const Threshold threshold =
      is_first ? Threshold{0, static_cast<uint32_t>(work.shape.k)} : workspace.thresholds[row];
  for (uint32_t i = first; i < least_of(first + tiles, tiles_a_row); ++i) {
    const Tile tile(row, i, work.shape.n);
    count_digits<feedback, is_first>(work, tile, digit, threshold, bins);
  }
  __syncthreads();
  uint32_t* const counts = workspace.counts + uint64_t{row} * kMostBins;
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) {
    if (bins[i] != 0) atomicAdd(counts + i, bins[i]);
  }
  if (!is_last(workspace.finished + row, parts)) return;
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) {
    bins[i] = __ldcg(counts + i);
    counts[i] = 0;
  }
  __syncthreads();
  const Threshold behind = find_digit(bins, digit, threshold);
  if (threadIdx.x == 0) workspace.thresholds[row] = behind;
}

/// Writes what is kept of a tile of a long row.
template <Feedback feedback>
__global__ void __launch_bounds__(kThreads)
    write_tiles(Selecting work, Workspace workspace, uint32_t tiles_a_row) {
  __shared__ uint64_t scratch[kWarps];
  const uint32_t number = next_tile(workspace.ticket);
  const Tile tile(number / tiles_a_row, number % tiles_a_row, work.shape.n);
  const Threshold threshold = workspace.thresholds[tile.row];
  const WarpTerms terms(work.terms_in, tile, threshold);
  uint64_t total = 0;
  const uint64_t before = before_warp(terms.counts, scratch, total);
  const uint64_t earlier = before_tile(workspace.words + tile.row * tiles_a_row, tile.number, total);
  write_kept<feedback>(work, terms, tile, threshold, Counts{earlier + before});
}

template <Feedback feedback>
void select(const Selecting& work, void* memory, Stream stream) {
  const auto tiles = static_cast<uint32_t>(tiles_of(work.shape.n));
  const uint64_t rows = work.shape.rows;
  if (work.shape.n <= kShortRow) {
    return launch(write_short_rows<feedback>, rows * kThreads, stream, work, tiles);
  }
  // A block of threads adds up what it counts, which is worth the more the more tiles it has; small messages
  // need the parallel blocks more.
  const uint32_t tiles_a_block = rows * work.shape.n < kManyElements ? 1 : 8;
  const uint64_t counting = rows * ((tiles + tiles_a_block - 1) / tiles_a_block) * kThreads;
  const Workspace workspace(memory, work.shape);
  clear(memory, work.shape.select_workspace(), stream);
  for (uint32_t digit = 0; digit < kDigits; ++digit) {
    const auto kernel = digit == 0 ? count_tiles<feedback, true> : count_tiles<Feedback::none, false>;
    launch(kernel, counting, stream, work, workspace, tiles, tiles_a_block, digit);
  }
  launch(write_tiles<feedback>, rows * tiles * kThreads, stream, work, workspace, tiles);
}

}  // namespace

size_t SparseRows::select_workspace() const {
  if (n <= kShortRow) return 0;
  return rows * (tiles_of(n) * sizeof(uint64_t) + sizeof(Threshold) + (kMostBins + 1) * sizeof(uint32_t)) +
         sizeof(uint32_t);
}

void write_largest(const float* x, FeedbackState feedback, float* terms, const SparseRows& shape,
                   ValueType type, uint8_t* bitmaps, void* values, void* workspace, uint32_t* faults,
                   Stream stream) {
  const auto work = [&](float* out) {
    return Selecting{x, feedback.state, out == nullptr ? x : out, out, shape, type, bitmaps, values, faults};
  };
  switch (feedback.kind) {
    case Feedback::none:
      return select<Feedback::none>(work(nullptr), workspace, stream);
    case Feedback::ef:  // the state becomes the sums, of which those that are sent are then taken
      return select<Feedback::ef>(work(feedback.state), workspace, stream);
    case Feedback::ef21:
      return select<Feedback::ef21>(work(terms), workspace, stream);
  }
}

}  // namespace strait::kernels::cuda
