#include <algorithm>
#include <cmath>
#include <cub/block/block_scan.cuh>

#include "strait/kernels/cuda/feedback_arithmetic.h"
#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/select_arithmetic.h"
#include "strait/kernels/cuda/sparse.h"
#include "strait/kernels/cuda/tiles.cuh"

// A row that fits the first-level cache is a block of threads' from its first read to its last, and comes from
// memory once. The tiles of a longer one are many blocks': one launch reads it to collect the candidates
// between two magnitudes that a sample suggests and to count what is above them, three find the digits among
// the candidates, and one reads it again and writes. Where a sample was wrong, or equal elements are more
// candidates than there is room for, the digits are looked for in the whole row.

namespace strait::kernels::cuda {
namespace {

constexpr uint64_t kShortRow = 16384;  // elements, 64 KiB
constexpr uint32_t kBinsAThread = kMostBins / kThreads;
constexpr uint32_t kSamplesAThread = 16;
constexpr uint32_t kSamples = kSamplesAThread * kThreads;  // of a row
constexpr uint64_t kCandidatesPart = 8;  // of a row's elements, one of so many may be a candidate

/// Where a message comes from and goes to.
struct Selecting {
  const float* x;
  float* state;  ///< null without feedback
  const float* terms_in;
  /// What is encoded, where it is not x: written by the first pass. With ef this is the state.
  float* terms;
  SparseRows shape;
  ValueType type;
  uint8_t* bitmaps;
  void* values;
  uint32_t* faults;
};

/// Between which magnitudes the threshold of a row is looked for, and how many elements are there and above.
struct Bracket {
  uint32_t low;
  uint32_t high;
  uint32_t above;
  uint32_t candidates;

  /// Whether the threshold of the k largest is among candidates that all had room.
  __device__ bool has_threshold(uint64_t k, uint64_t room) const {
    return above < k && k <= uint64_t{above} + candidates && candidates <= room;
  }
};

/// What tells the blocks of threads of long rows about each other; all 0 before, but for the candidates.
struct Workspace {
  uint64_t* words;        ///< a tile's, for look_back()
  Threshold* thresholds;  ///< a row's
  Bracket* brackets;      ///< a row's
  uint32_t* counts;       ///< a row's, kMostBins of the digit that is looked for
  uint32_t* finished;     ///< a row's blocks of threads that have counted
  uint32_t* ticket;
  float* candidates;  ///< a row's, with room for some

  Workspace(void* memory, const SparseRows& shape) {
    words = static_cast<uint64_t*>(memory);
    thresholds = reinterpret_cast<Threshold*>(words + shape.rows * tiles_of(shape.n));
    brackets = reinterpret_cast<Bracket*>(thresholds + shape.rows);
    counts = reinterpret_cast<uint32_t*>(brackets + shape.rows);
    finished = counts + shape.rows * kMostBins;
    ticket = finished + shape.rows;
    candidates = reinterpret_cast<float*>(ticket + 1);
  }
  /// Room for the candidates of a row of n elements.
  static constexpr uint64_t room(uint64_t n) { return n / kCandidatesPart; }
  /// Bytes before the candidates.
  static size_t bytes_to_clear(const SparseRows& shape) {
    return shape.rows * (tiles_of(shape.n) * sizeof(uint64_t) + sizeof(Threshold) + sizeof(Bracket) +
                         (kMostBins + 1) * sizeof(uint32_t)) +
           sizeof(uint32_t);
  }
};

/// Which places of a row's sample enclose its threshold, from the largest element on: 0 and more than there are
/// samples are beyond its ends.
struct SampleRanks {
  uint32_t high;
  uint32_t low;

  /// More than three standard deviations to both sides.
  explicit SampleRanks(const SparseRows& shape) {
    const double share = static_cast<double>(shape.k) / static_cast<double>(shape.n);
    const double place = share * kSamples;
    const double around = 3.5 * std::sqrt(place * (1 - share)) + 1;
    high = static_cast<uint32_t>(std::max(0.0, place - around));
    low = static_cast<uint32_t>(place + around) + 1;
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

/// The terms of this lane's elements of a tile; what is behind the row's end is not set.
template <Feedback feedback>
__device__ void load_first_terms(const Selecting& work, const Tile& tile, float (&x)[kSteps]) {
#pragma unroll
  for (uint32_t step = 0; step < kSteps; ++step) {
    if (tile.at(step) < tile.n) x[step] = first_term<feedback>(work, tile.row * tile.n + tile.at(step));
  }
}

/// Adds the digit's values among the tile's terms that agree with the digits before to `bins` in shared memory.
/// Zeros, of which a tensor behind a ReLU has many, are counted by a vote, not one by one in the same place.
__device__ void count_digits(const float (&x)[kSteps], const Tile& tile, uint32_t digit, Threshold threshold,
                             uint32_t* bins) {
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

/// This lane's elements of a tile of a row that begins at `terms`; what is behind its end is not set.
__device__ void load_tile(const float* terms, const Tile& tile, float (&x)[kSteps]) {
#pragma unroll
  for (uint32_t step = 0; step < kSteps; ++step) {
    if (tile.at(step) < tile.n) x[step] = terms[tile.at(step)];
  }
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
      float x[kSteps];
      if (digit == 0) {
        load_first_terms<feedback>(work, tile, x);
      } else {
        load_tile(work.terms_in + tile.row * tile.n, tile, x);
      }
      count_digits(x, tile, digit, threshold, bins);
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

/// Finds the brackets of long rows, a block of threads one, by equally spaced elements.
template <Feedback feedback>
__global__ void __launch_bounds__(kThreads)
    guess_brackets(Selecting work, Workspace workspace, SampleRanks ranks) {
  __shared__ uint32_t bins[kMostBins];
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  uint32_t sample[kSamplesAThread];
#pragma unroll
  for (uint32_t i = 0; i < kSamplesAThread; ++i) {
    const uint64_t place = uint64_t{i * kThreads + threadIdx.x} * work.shape.n / kSamples;
    const uint64_t index = uint64_t{blockIdx.x} * work.shape.n + place;
    const float state = feedback == Feedback::none ? 0.0F : work.state[index];
    sample[i] = magnitude_bits(term_of<feedback>(work.x[index], state));
  }
  const auto magnitude_at = [&](uint32_t rank) {
    Threshold threshold{0, rank};
    for (uint32_t digit = 0; digit < kDigits; ++digit) {
      for (const uint32_t magnitude : sample) {
        if (threshold.is_candidate(magnitude, digit)) atomicAdd(bins + digit_of(magnitude, digit), 1);
      }
      __syncthreads();
      threshold = find_digit(bins, digit, threshold);
    }
    return threshold.magnitude;
  };
  const uint32_t high = ranks.high == 0 ? 0xffffffff : magnitude_at(ranks.high);
  const uint32_t low = ranks.low > kSamples ? 0 : magnitude_at(ranks.low);
  if (threadIdx.x == 0) workspace.brackets[blockIdx.x] = {low, high, 0, 0};
}

/// Counts what of some tiles of a long row is above the row's bracket, `tiles` or, in the row's last part,
/// fewer, and collects what is in it, in any order.
template <Feedback feedback>
__global__ void __launch_bounds__(kThreads)
    collect_candidates(Selecting work, Workspace workspace, uint32_t tiles_a_row, uint32_t tiles) {
  __shared__ uint64_t scratch[kWarps];
  __shared__ uint32_t place_of_tile;
  const uint32_t parts = (tiles_a_row + tiles - 1) / tiles;
  const uint32_t row = blockIdx.x / parts;
  const uint32_t first = (blockIdx.x - row * parts) * tiles;
  Bracket* const bracket = workspace.brackets + row;
  const uint32_t low = bracket->low;
  const uint32_t high = bracket->high;
  const uint64_t room = Workspace::room(work.shape.n);
  float* const candidates = workspace.candidates + row * room;
  uint32_t above = 0;
  for (uint32_t i = first; i < least_of(first + tiles, tiles_a_row); ++i) {
    const Tile tile(row, i, work.shape.n);
    float x[kSteps];
    uint32_t inside[kSteps];  // votes
    load_first_terms<feedback>(work, tile, x);
    uint32_t of_warp = 0;
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      const bool is_element = tile.at(step) < tile.n;
      const uint32_t magnitude = is_element ? magnitude_bits(x[step]) : 0;
      const bool is_above = is_element && magnitude > high;
      above += __popc(__ballot_sync(kAllLanes, is_above));
      inside[step] = __ballot_sync(kAllLanes, is_element && !is_above && magnitude >= low);
      of_warp += __popc(inside[step]);
    }
    uint64_t of_tile = 0;
    const uint64_t before = before_warp(of_warp, scratch, of_tile);
    if (threadIdx.x == 0) {
      place_of_tile = of_tile == 0 ? 0 : atomicAdd(&bracket->candidates, static_cast<uint32_t>(of_tile));
    }
    __syncthreads();
    uint64_t place = place_of_tile + before;
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      const uint64_t own = place + __popc(inside[step] & lanes_before());
      if ((inside[step] >> threadIdx.x % kLanes & 1) != 0 && own < room) candidates[own] = x[step];
      place += __popc(inside[step]);
    }
    __syncthreads();
  }
  if (threadIdx.x % kLanes == 0 && above != 0) atomicAdd(&bracket->above, above);
}

/// Counts the digit's values in some tiles of the candidates of a long row, or of the row itself; a block of
/// threads has `tiles` or fewer. The last block of a row finds the digit.
__global__ void __launch_bounds__(kThreads)
    count_tiles(Selecting work, Workspace workspace, uint32_t tiles_a_row, uint32_t tiles, uint32_t digit) {
  __shared__ uint32_t bins[kMostBins];
  const uint32_t parts_a_row = (tiles_a_row + tiles - 1) / tiles;
  const uint32_t row = blockIdx.x / parts_a_row;
  const uint32_t first = (blockIdx.x - row * parts_a_row) * tiles;
  const Bracket bracket = workspace.brackets[row];
  const uint64_t room = Workspace::room(work.shape.n);
  const bool is_found = bracket.has_threshold(work.shape.k, room);
  const float* const terms = is_found ? workspace.candidates + row * room : work.terms_in + row * work.shape.n;
  const uint64_t size = is_found ? bracket.candidates : work.shape.n;
  const auto own_tiles = static_cast<uint32_t>(tiles_of(size));
  if (first >= own_tiles) return;
  const uint32_t parts = (own_tiles + tiles - 1) / tiles;
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  const auto wanted = static_cast<uint32_t>(work.shape.k - (is_found ? bracket.above : 0));
  const Threshold threshold = digit == 0 ? Threshold{0, wanted} : workspace.thresholds[row];
  for (uint32_t i = first; i < least_of(first + tiles, own_tiles); ++i) {
    const Tile tile(row, i, size);
    float x[kSteps];
    load_tile(terms, tile, x);
    count_digits(x, tile, digit, threshold, bins);
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
  clear(memory, Workspace::bytes_to_clear(work.shape), stream);
  launch(guess_brackets<feedback>, rows * kThreads, stream, work, workspace, SampleRanks(work.shape));
  launch(collect_candidates<feedback>, counting, stream, work, workspace, tiles, tiles_a_block);
  for (uint32_t digit = 0; digit < kDigits; ++digit) {
    launch(count_tiles, counting, stream, work, workspace, tiles, tiles_a_block, digit);
  }
  launch(write_tiles<feedback>, rows * tiles * kThreads, stream, work, workspace, tiles);
}

}  // namespace

size_t SparseRows::select_workspace() const {
  if (n <= kShortRow) return 0;
  return Workspace::bytes_to_clear(*this) + rows * Workspace::room(n) * sizeof(float);
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
