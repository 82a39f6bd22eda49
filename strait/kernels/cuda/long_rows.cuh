#pragma once

#include <algorithm>
#include <cmath>

#include "strait/kernels/cuda/selecting.cuh"

// TopK of rows that many blocks of threads share. One launch reads a row to collect the candidates between two
// magnitudes that a sample suggests and to count what is above them; the digits are found among the candidates,
// which also say what each strip keeps; and one launch reads the row again and writes. Where a sample was
// wrong, or equal elements are more candidates than there is room for, the row itself takes their place.

namespace strait::kernels::cuda {

constexpr uint32_t kSamplesAThread = 16;
constexpr uint32_t kSamples = kSamplesAThread * kThreads;  // of a row
constexpr uint64_t kCandidatesShare = 8;  // of the elements of a row or strip, one of so many may be one
constexpr uint32_t kStaged = kStripItems / kCandidatesShare;

/// Between which magnitudes the threshold of a row is looked for, and how many elements are there and above.
struct Bracket {
  uint32_t low;
  uint32_t high;
  uint32_t above;
  uint32_t candidates;
  uint32_t is_short_of_room;  ///< for candidates of a strip

  /// Whether the threshold of the k largest is among candidates that all had room.
  __device__ bool has_threshold(const SparseRows& shape) const {
    return is_short_of_room == 0 && candidates <= shape.n / kCandidatesShare && above < shape.k &&
           shape.k <= uint64_t{above} + candidates;
  }
};

/// A strip's candidates among those of its row, and how many of its elements are above them.
struct OfStrip {
  uint32_t begin;
  uint32_t candidates;
  uint32_t above;
};

/// What the launches tell each other.
struct Workspace {
  uint64_t* counts;       ///< a strip's, for add_up_row()
  Threshold* thresholds;  ///< a row's
  Bracket* brackets;      ///< a row's
  OfStrip* strips;
  uint32_t* bins;      ///< a row's, kMostBins of the digit that is looked for
  uint32_t* finished;  ///< a row's blocks of threads that have counted
  float* candidates;   ///< a row's, n / kCandidatesShare

  Workspace(void* memory, const SparseRows& shape)
      : counts(static_cast<uint64_t*>(memory)),
        thresholds(reinterpret_cast<Threshold*>(counts + shape.rows * strips_of(shape.n))),
        brackets(reinterpret_cast<Bracket*>(thresholds + shape.rows)),
        strips(reinterpret_cast<OfStrip*>(brackets + shape.rows)),
        bins(reinterpret_cast<uint32_t*>(strips + shape.rows * strips_of(shape.n))),
        finished(bins + shape.rows * kMostBins),
        candidates(reinterpret_cast<float*>(finished + shape.rows)) {}

  static size_t bytes(const SparseRows& shape) {
    return shape.rows *
           (strips_of(shape.n) * (sizeof(uint64_t) + sizeof(OfStrip)) + sizeof(Threshold) + sizeof(Bracket) +
            (kMostBins + 1) * sizeof(uint32_t) + shape.n / kCandidatesShare * sizeof(float));
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

/// What all launches take.
struct LongRows {
  Selecting work;
  Workspace workspace;
  WholeDivision strips_a_row;
  WholeDivision blocks_a_row;  ///< that count digits

  __device__ bool has(const Strip& strip) const { return strip.row < work.shape.rows; }
  __device__ float* candidates(uint64_t row) const {
    return workspace.candidates + row * (work.shape.n / kCandidatesShare);
  }
};

/// Finds the brackets of rows, a block of threads one, by equally spaced elements, and clears what is counted
/// in.
template <Feedback feedback>
__global__ void __launch_bounds__(kThreads) guess_brackets(LongRows rows, SampleRanks ranks) {
  constexpr Digits kAll;
  constexpr uint32_t kLargest = 0x7fffffff;  // magnitude
  const Selecting& work = rows.work;
  __shared__ uint32_t bins[kMostBins];
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) {
    bins[i] = 0;
    rows.workspace.bins[uint64_t{blockIdx.x} * kMostBins + i] = 0;
  }
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
    Threshold threshold{kAll.low, rank};
    for (uint32_t digit = 0; digit < kDigits; ++digit) {
      for (const uint32_t magnitude : sample) {
        if (threshold.is_candidate(magnitude, kAll, digit)) atomicAdd(bins + kAll.value(magnitude, digit), 1);
      }
      __syncthreads();
      threshold = find_digit(bins, kAll, digit, threshold);
    }
    return threshold.magnitude;
  };
  const uint32_t high = ranks.high == 0 ? kLargest : magnitude_at(ranks.high);
  const uint32_t low = ranks.low > kSamples ? 0 : magnitude_at(ranks.low);
  if (threadIdx.x != 0) return;
  rows.workspace.brackets[blockIdx.x] = {low, high, 0, 0, 0};
  rows.workspace.finished[blockIdx.x] = 0;
}

/// Counts what of a strip is above its row's bracket, and collects what is in it; strips come in any order.
template <Feedback feedback>
__global__ void __launch_bounds__(kThreads) collect_candidates(LongRows rows) {
  __shared__ float staged[kWarps][kStaged];
  const Strip strip(rows.strips_a_row, rows.work.shape.n);
  if (!rows.has(strip)) return;
  Bracket* const bracket = rows.workspace.brackets + strip.row;
  const uint32_t low = bracket->low;
  const uint32_t high = bracket->high;
  float* const of_warp = staged[threadIdx.x / kLanes];
  uint32_t above = 0;
  uint32_t found = 0;
#pragma unroll 2
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t count = strip.count(round);
    float terms[kOctet];
    load_first_terms<feedback>(rows.work, uint64_t{strip.row} * strip.n + strip.at(round), count, terms);
    uint32_t is_above = 0;
    uint32_t is_inside = 0;
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      const uint32_t magnitude = magnitude_bits(terms[i]);
      is_above |= (magnitude > high ? 1U : 0U) << i;
      is_inside |= (magnitude - low <= high - low ? 1U : 0U) << i;
    }
    above += __popc(is_above & first_bits(count));
    is_inside &= first_bits(count);
    uint32_t of_round = 0;
    uint32_t place = found + before_lane(__popc(is_inside), of_round);
    found += of_round;
    if (is_inside == 0) continue;
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      if ((is_inside >> i & 1) == 0) continue;
      if (place < kStaged) of_warp[place] = terms[i];
      ++place;
    }
  }
  above = of_all_lanes(above);
  uint32_t begin = 0;
  if (lane_number() == 0) {
    if (above != 0) atomicAdd(&bracket->above, above);
    if (found != 0) begin = atomicAdd(&bracket->candidates, found);
    if (found > kStaged) bracket->is_short_of_room = 1;
    rows.workspace.strips[strip.number] = {begin, found, above};
  }
  begin = __shfl_sync(kAllLanes, begin, 0);
  __syncwarp();
  const uint64_t room = strip.n / kCandidatesShare;
  for (uint32_t i = lane_number(); i < least_of(found, kStaged); i += kLanes) {
    if (begin + i < room) rows.candidates(strip.row)[begin + i] = of_warp[i];
  }
}

/// Whether this block of threads is the last one of `blocks` to come here with `finished`, which is 0 before
/// and after. What the others have written is there then for those who read past the first-level cache.
inline __device__ bool is_last(uint32_t* finished, uint32_t blocks) {
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

/// Counts the digit's values among the candidates of a row, or in the row itself; the last block of a row finds
/// the digit.
static __global__ void __launch_bounds__(kThreads) count_row(LongRows rows, uint32_t digit) {
  constexpr uint32_t kItems = kThreads * kOctet;  // of a block at a time
  __shared__ uint32_t bins[kMostBins];
  const SparseRows& shape = rows.work.shape;
  const uint32_t row = rows.blocks_a_row.of(blockIdx.x);
  const uint32_t block = blockIdx.x - row * rows.blocks_a_row.by();
  const Bracket bracket = rows.workspace.brackets[row];
  const bool is_found = bracket.has_threshold(shape);
  const Digits digits = is_found ? Digits::between(bracket.low, bracket.high) : Digits();
  const float* const terms = is_found ? rows.candidates(row) : rows.work.terms_in + row * shape.n;
  const auto size = is_found ? bracket.candidates : static_cast<uint32_t>(shape.n);
  const uint32_t blocks = least_of(rows.blocks_a_row.by(), (size + kItems - 1) / kItems);
  if (block >= blocks || !digits.has(digit)) return;
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  const auto wanted = static_cast<uint32_t>(shape.k - (is_found ? bracket.above : 0));
  const Threshold threshold = digit == 0 ? Threshold{digits.low, wanted} : rows.workspace.thresholds[row];
  for (uint32_t begin = block * kItems; begin < size; begin += blocks * kItems) {
    const uint32_t at = begin + threadIdx.x * kOctet;
    const uint32_t count = Strip::octet_size(at, size);
    float octet[kOctet];
    load_octet(terms + at, count, octet);
    count_digits(octet, count, digits, digit, threshold, bins);
  }
  __syncthreads();
  uint32_t* const of_row = rows.workspace.bins + uint64_t{row} * kMostBins;
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) {
    if (bins[i] != 0) atomicAdd(of_row + i, bins[i]);
  }
  if (!is_last(rows.workspace.finished + row, blocks)) return;
  for (uint32_t i = threadIdx.x; i < kMostBins; i += kThreads) {
    bins[i] = __ldcg(of_row + i);
    of_row[i] = 0;
  }
  __syncthreads();
  const Threshold behind = find_digit(bins, digits, digit, threshold);
  if (threadIdx.x == 0) rows.workspace.thresholds[row] = behind;
}

/// Counts what of each strip is above the threshold and what equals it.
static __global__ void __launch_bounds__(kThreads) count_strips(LongRows rows) {
  const Strip strip(rows.strips_a_row, rows.work.shape.n);
  if (!rows.has(strip)) return;
  const Bracket bracket = rows.workspace.brackets[strip.row];
  const bool is_found = bracket.has_threshold(rows.work.shape);
  const Threshold threshold = rows.workspace.thresholds[strip.row];
  const OfStrip of_strip = rows.workspace.strips[strip.number];
  const float* const terms = is_found ? rows.candidates(strip.row) + of_strip.begin
                                      : rows.work.terms_in + uint64_t{strip.row} * strip.n + strip.begin;
  const uint32_t size = is_found ? of_strip.candidates : least_of(strip.n - strip.begin, kStripItems);
  uint32_t counts = 0;
  for (uint32_t at = lane_number(); at < size; at += kLanes) {
    const uint32_t magnitude = magnitude_bits(terms[at]);
    counts += (magnitude > threshold.magnitude ? 1U : 0U) | (magnitude == threshold.magnitude ? 1U << 16 : 0U);
  }
  const Counts all = Votes::unpacked(of_all_lanes(counts));
  if (lane_number() != 0) return;
  rows.workspace.counts[strip.number] = all.then(Counts::of(is_found ? of_strip.above : 0, 0)).packed;
}

static __global__ void __launch_bounds__(kThreads) add_up_strips(LongRows rows) {
  const uint32_t strips = rows.strips_a_row.by();
  add_up_row(rows.workspace.counts + uint64_t{blockIdx.x} * strips, strips);
}

/// Writes what is kept of a strip.
template <Feedback feedback, ValueType type>
__global__ void __launch_bounds__(kThreads) write_strips(LongRows rows) {
  const Strip strip(rows.strips_a_row, rows.work.shape.n);
  if (!rows.has(strip)) return;
  const Threshold threshold = rows.workspace.thresholds[strip.row];
  Counts before{rows.workspace.counts[strip.number]};
#pragma unroll 2
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint32_t count = strip.count(round);
    float terms[kOctet];
    load_octet(rows.work.terms_in + uint64_t{strip.row} * strip.n + strip.at(round), count, terms);
    const Votes votes(terms, count, threshold);
    uint32_t of_round = 0;
    const uint32_t earlier = before_lane(votes.counts(), of_round);
    write_octet<feedback, type>(rows.work, terms, count, strip.row, strip.at(round), votes, threshold,
                                before.then(Votes::unpacked(earlier)));
    before = before.then(Votes::unpacked(of_round));
  }
}

template <Feedback feedback, ValueType type>
void select_of_long_rows(const Selecting& work, void* memory, Stream stream) {
  const SparseRows& shape = work.shape;
  const auto strips = static_cast<uint32_t>(strips_of(shape.n));
  // A block of threads adds up what it counts, which is worth the more the more it has; small messages need the
  // parallel blocks more.
  const uint32_t strips_a_block = shape.rows * shape.n < kManyElements ? 4 : 32;
  const LongRows rows{work, Workspace(memory, shape), WholeDivision(strips),
                      WholeDivision((strips + strips_a_block - 1) / strips_a_block)};
  const uint64_t a_warp_each = shape.rows * strips * kLanes;
  const uint64_t counting = shape.rows * rows.blocks_a_row.by() * kThreads;
  launch(guess_brackets<feedback>, shape.rows * kThreads, stream, rows, SampleRanks(shape));
  launch(collect_candidates<feedback>, a_warp_each, stream, rows);
  for (uint32_t digit = 0; digit < kDigits; ++digit) launch(count_row, counting, stream, rows, digit);
  launch(count_strips, a_warp_each, stream, rows);
  launch(add_up_strips, shape.rows * kThreads, stream, rows);
  launch(write_strips<feedback, type>, a_warp_each, stream, rows);
}

}  // namespace strait::kernels::cuda
