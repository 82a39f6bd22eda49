#include "strait/kernels/select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "strait/kernels/masked.h"
#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/select.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"
#include "strait/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

/// Where elements come from: at(i) gives kLanes of them from i on, at_end(i, count, out) fewer, one(i) one; the
/// first two may change something and are called once for each element. A group is read at kStreams places at
/// once, of which memory serves several faster than one.
struct Plain {
  static constexpr size_t kStreams = 4;

  const float* x;

  HWY_INLINE hn::Vec<Floats> at(size_t i) const { return hn::LoadU(Floats(), x + i); }
  void at_end(size_t i, size_t count, float* out) const { std::copy_n(x + i, count, out); }
  float one(size_t i) const { return x[i]; }
  HWY_INLINE void prefetch_at(size_t i) const { prefetch(x + i); }
  Plain again() const { return *this; }
};

struct Sums {
  static constexpr size_t kStreams = 1;

  const float* x;
  const float* y;
  float* sums;

  HWY_INLINE hn::Vec<Floats> at(size_t i) const {
    const auto sum = hn::Add(hn::LoadU(Floats(), x + i), hn::LoadU(Floats(), y + i));
    hn::StoreU(sum, Floats(), sums + i);
    return sum;
  }
  void at_end(size_t i, size_t count, float* out) const {
    for (size_t j = 0; j < count; ++j) out[j] = sums[i + j] = x[i + j] + y[i + j];
  }
  float one(size_t i) const { return x[i] + y[i]; }
  HWY_INLINE void prefetch_at(size_t i) const {
    prefetch(x + i);
    prefetch(y + i);
    prefetch(sums + i);
  }
  Plain again() const { return {sums}; }
};

struct Differences {
  static constexpr size_t kStreams = 2;

  const float* x;
  const float* y;

  HWY_INLINE hn::Vec<Floats> at(size_t i) const {
    return hn::Sub(hn::LoadU(Floats(), x + i), hn::LoadU(Floats(), y + i));
  }
  void at_end(size_t i, size_t count, float* out) const {
    for (size_t j = 0; j < count; ++j) out[j] = x[i + j] - y[i + j];
  }
  float one(size_t i) const { return x[i] - y[i]; }
  HWY_INLINE void prefetch_at(size_t i) const {
    prefetch(x + i);
    prefetch(y + i);
  }
  Differences again() const { return *this; }
};

using Unsigned = hn::RebindToUnsigned<Floats>;

HWY_INLINE hn::Vec<Unsigned> mixed(hn::Vec<Unsigned> x) {  // lowbias32()
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(Unsigned(), 0x7feb352d));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(Unsigned(), 0x846ca68b));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

/// Draws of 31 bits as magnitudes, the least draw as the largest; as floats they mean nothing.
struct Draws {
  static constexpr size_t kStreams = 1;

  Dither dither;

  HWY_INLINE hn::Vec<Floats> at(size_t i) const {
    const uint64_t first = dither.first_index + i;
    const auto low = static_cast<uint32_t>(first);
    if (low > std::numeric_limits<uint32_t>::max() - kLanes) {  // the lower half of the index wraps
      alignas(64) std::array<float, kLanes> lanes;
      at_end(i, kLanes, lanes.data());
      return hn::Load(Floats(), lanes.data());
    }
    const uint32_t key1 = dither.key1 + static_cast<uint32_t>(first >> 32) * kDitherHighFactor;
    const auto index =
        hn::Xor(hn::Add(hn::Iota(Unsigned(), 0), hn::Set(Unsigned(), low)), hn::Set(Unsigned(), dither.key0));
    const auto draw = mixed(hn::Add(mixed(index), hn::Set(Unsigned(), key1)));
    return hn::BitCast(Floats(), hn::ShiftRight<1>(hn::Not(draw)));
  }
  void at_end(size_t i, size_t count, float* out) const {
    for (size_t j = 0; j < count; ++j) out[j] = one(i + j);
  }
  float one(size_t i) const { return std::bit_cast<float>(~draw_at(dither, dither.first_index + i) >> 1); }
  HWY_INLINE void prefetch_at(size_t /*i*/) const {}
  Draws again() const { return *this; }
};

template <class V>
HWY_INLINE auto magnitude(V values) {
  return hn::And(hn::BitCast(Integers(), values), hn::Set(Integers(), 0x7fffffff));
}

/// The elements that are kept: those of magnitude above `value`, and the first `ties` of those that equal it.
struct Threshold {
  int32_t value = 0;
  size_t ties = 0;
};

/// Floats in space for whole words of 64, filled up with zeros.
struct Candidates {
  float* data = nullptr;
  size_t count = 0;

  size_t words() const { return mask_words(count); }
  void fill_up() const { std::fill_n(data + count, words() * 64 - count, 0.0F); }
};

/// How many have a magnitude above `value` >= 0.
size_t count_above(const Candidates& from, int32_t value) {
  const auto bound = hn::Set(Integers(), value);
  auto sum0 = hn::Zero(Integers());
  auto sum1 = sum0;
  for (size_t i = 0; i < from.words() * 64; i += 2 * kLanes) {  // a true lane is -1
    const auto at = [&](size_t j) { return magnitude(hn::LoadU(Floats(), from.data + j)); };
    sum0 = hn::Sub(sum0, hn::VecFromMask(Integers(), hn::Gt(at(i), bound)));
    sum1 = hn::Sub(sum1, hn::VecFromMask(Integers(), hn::Gt(at(i + kLanes), bound)));
  }
  // Up to 2^32 in all, of which a lane has a part.
  return static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(Integers(), hn::Add(sum0, sum1))));
}

/// A magnitude, and how many candidates are above it.
struct Point {
  int64_t value = 0;
  size_t above = 0;
};

constexpr size_t kFew = 16;  // candidates that are sorted rather than counted

/// The threshold that keeps k of up to kFew candidates.
Threshold sort_few(const Candidates& from, size_t k) {
  std::array<int32_t, kFew> few{};
  const auto end = std::transform(from.data, from.data + from.count, few.begin(),
                                  [](float value) { return std::bit_cast<int32_t>(value) & 0x7fffffff; });
  std::sort(few.begin(), end, std::greater());
  const int32_t value = few[k - 1];
  return {value, k - static_cast<size_t>(std::find(few.begin(), end, value) - few.begin())};
}

/// Copies the candidates between two magnitudes, excluding the lower, to `space`, which may be where they are.
Candidates between(const Candidates& from, int64_t low, int64_t high, float* space) {
  const auto below = hn::Set(Integers(), static_cast<int32_t>(low));
  const auto above = hn::Set(Integers(), static_cast<int32_t>(high));
  float* end = space;
  for (size_t i = 0; i < from.words() * 64; i += kLanes) {
    const auto values = hn::LoadU(Floats(), from.data + i);
    const auto inside = hn::AndNot(hn::Gt(magnitude(values), above), hn::Gt(magnitude(values), below));
    end += compress_store(values, bits_of(hn::RebindMask(Floats(), inside)), end);
  }
  const Candidates found{space, static_cast<size_t>(end - space)};
  found.fill_up();
  return found;
}

/// The threshold that keeps k of the candidates, where more than k are above `low`. Each step counts those
/// above a magnitude in between, first `hint`, then where a line through the last two counts comes to the other
/// side of k, every fourth time the middle. When few are left between the bounds, they are copied to `space`,
/// and only they are searched.
Threshold find_threshold(Candidates from, size_t k, Point low, int64_t hint, float* space) {
  Point high{std::numeric_limits<int32_t>::max(), 0};
  Point last = low;
  int64_t middle = hint;
  for (int step = 1; high.value - low.value > 1; ++step) {
    const size_t left = low.above - high.above;
    if (left <= from.count / 8 || left <= kFew) {
      from = between(from, low.value, high.value, space);
      k -= high.above;
      last.above -= high.above;
      low.above = left;
      high.above = 0;
      if (left <= kFew) return sort_few(from, k);
    }
    middle = std::clamp(middle, low.value + 1, high.value - 1);
    const Point now{middle, count_above(from, static_cast<int32_t>(middle))};
    if (now.above == k) return {static_cast<int32_t>(middle), 0};
    const auto missed = static_cast<double>(now.above) - static_cast<double>(k);
    (missed > 0 ? low : high) = now;
    const double step_size = static_cast<double>(now.value - last.value);
    const double steepness = (static_cast<double>(last.above) - static_cast<double>(now.above)) / step_size;
    const double aim = missed + std::copysign(std::max(kFew / 3.0, std::abs(missed) / 8), missed);
    middle = step % 4 == 0 || !(steepness > 0) ? low.value + (high.value - low.value) / 2
                                               : now.value + static_cast<int64_t>(aim / steepness);
    last = now;
  }
  return {static_cast<int32_t>(high.value), k - high.above};
}

/// Magnitudes >= 1 that somewhat more than k of n elements reach, and that about k do, as far as a sample
/// tells.
struct Guess {
  int32_t bound = 1;
  int32_t hint = 1;
};

template <class Source>
Guess guess(const Source& source, size_t n, size_t k) {
  constexpr size_t kSample = 1024;
  constexpr size_t kRun = 8;
  if (n < 4 * kSample) return {};
  alignas(64) std::array<float, kSample> sample;
  std::array<float, kSample / 8 + 64> space;
  const size_t stride = n / (kSample / kRun);
  for (size_t i = 0; i < kSample; ++i) sample[i] = source.one(i / kRun * stride + i % kRun);
  const Candidates all{sample.data(), kSample};
  const Point zero{0, count_above(all, 0)};
  const auto reached_by = [&](size_t rank) {
    if (rank >= zero.above) return 1;
    const auto [value, ties] = find_threshold(all, rank, zero, 0x3f800000, space.data());
    return ties > 0 ? value : value + 1;
  };
  // Four standard deviations of the number of sampled elements that are among the k largest.
  const double share = static_cast<double>(k) / static_cast<double>(n);
  const double expected = share * kSample;
  const auto rank = static_cast<size_t>(expected + 4 * std::sqrt(expected * (1 - share)) + 1);
  return {reached_by(rank), reached_by(static_cast<size_t>(expected) + 1)};
}

/// Draws are uniform, so that nobody need look at any.
Guess guess(const Draws& /*source*/, size_t n, size_t k) {
  const auto all = static_cast<double>(n);
  const auto reached_by = [&](double count) {
    return static_cast<int32_t>(std::max(1.0, 0x7fffffff * (1 - count / all)));
  };
  const auto wanted = static_cast<double>(k);
  // Five standard deviations of the number of draws in the share k / n.
  return {reached_by(wanted + 5 * std::sqrt(wanted * (1 - wanted / all)) + 1), reached_by(wanted)};
}

/// Takes words of 64 elements: gives the marks of those that reach a bound, and appends these.
class Collector {
 public:
  Collector() = default;
  Collector(int32_t bound, float* space) : below_(bound - 1), next_(space) {}

  template <class At>
  HWY_INLINE uint64_t take(At at) {
    const auto below = hn::Set(Integers(), below_);
    uint64_t word = 0;
    for (size_t i = 0; i < 64; i += kLanes) {
      const auto values = at(i);
      const uint64_t bits = bits_of(hn::RebindMask(Floats(), hn::Gt(magnitude(values), below)));
      next_ += compress_store(values, bits, next_);
      word |= bits << i;
    }
    return word;
  }

  float* end() const { return next_; }

 private:
  int32_t below_ = 0;
  float* next_ = nullptr;
};

constexpr size_t kSlack = 64;  // floats behind each stream's candidates

/// Marks the elements that reach the bound, and gives them. Reads at kStreams places at once.
template <size_t kStreams, class Source>
Candidates collect(const Source& source, size_t n, int32_t bound, float* space, std::span<uint64_t> mask) {
  const size_t each = n / 64 / kStreams;  // words
  const auto begin_of = [&](size_t stream) { return space + stream * (each * 64 + kSlack); };
  std::array<Collector, kStreams> streams;
  for (size_t stream = 0; stream < kStreams; ++stream) streams[stream] = {bound, begin_of(stream)};
  for (size_t step = 0; step < each; ++step) {
    for (size_t stream = 0; stream < kStreams; ++stream) {
      const size_t word = stream * each + step;
      for (size_t i = 0; i < 64; i += 16) source.prefetch_at(word * 64 + i + kAhead);
      mask[word] = streams[stream].take([&](size_t i) HWY_ATTR { return source.at(word * 64 + i); });
    }
  }
  float* end = streams[0].end();
  for (size_t stream = 1; stream < kStreams; ++stream) {
    end = std::copy(begin_of(stream), streams[stream].end(), end);
  }
  Collector rest(bound, end);
  for (size_t begin = each * kStreams * 64; begin < n; begin += 64) {
    alignas(64) std::array<float, 64> last{};
    source.at_end(begin, std::min<size_t>(64, n - begin), last.data());
    mask[begin / 64] = rest.take([&](size_t i) HWY_ATTR { return hn::Load(Floats(), last.data() + i); });
  }
  const Candidates found{space, static_cast<size_t>(rest.end() - space)};
  found.fill_up();
  return found;
}

/// The lowest `count` set bits of a word.
uint64_t lowest_bits(uint64_t word, size_t count) {
  uint64_t kept = 0;
  for (; count > 0 && word != 0; --count, word &= word - 1) kept |= word & (0 - word);
  return kept;
}

/// The candidates within the threshold move to the front, in the same order; which they were goes to `kept`.
void narrow(const Candidates& from, Threshold threshold, uint64_t* kept) {
  const auto bound = hn::Set(Integers(), threshold.value);
  float* next = from.data;
  for (size_t word = 0; word < from.words(); ++word) {
    const float* part = from.data + word * 64;
    const auto at = [&](size_t i) HWY_ATTR { return magnitude(hn::LoadU(Floats(), part + i)); };
    const auto flags = [](auto mask) HWY_ATTR { return hn::RebindMask(Floats(), mask); };
    uint64_t bits = word_of([&](size_t i) HWY_ATTR { return flags(hn::Gt(at(i), bound)); });
    if (threshold.ties > 0) {
      const uint64_t equal = word_of([&](size_t i) HWY_ATTR { return flags(hn::Eq(at(i), bound)); });
      const uint64_t ties = lowest_bits(equal, threshold.ties);
      threshold.ties -= static_cast<size_t>(std::popcount(ties));
      bits |= ties;
    }
    kept[word] = bits;
    for (size_t i = 0; i < 64; i += kLanes) {
      next += compress_store(hn::LoadU(Floats(), part + i), bits >> i, next);
    }
  }
}

/// Bit j of `bits` at the place of the j-th set bit of the mask.
HWY_INLINE uint64_t deposit(uint64_t bits, uint64_t mask) {
#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
  return _pdep_u64(bits, mask);
#else
  uint64_t placed = 0;
  for (; mask != 0; mask &= mask - 1, bits >>= 1) placed |= mask & (0 - (bits & 1)) & (0 - mask);
  return placed;
#endif
}

/// Of the masked positions, only those stay whose bit of the stream `kept` is set.
void narrow_mask(const uint64_t* kept, std::span<uint64_t> mask) {
  size_t done = 0;
  for (auto& word : mask) {
    const size_t shift = done % 64;
    // Shifted by 64 - shift in two steps, since a shift by 64 is not defined.
    const uint64_t bits = kept[done / 64] >> shift | kept[done / 64 + 1] << 1 << (63 - shift);
    done += static_cast<size_t>(std::popcount(word));
    word = deposit(bits, word);
  }
}

/// Marks the first `count` of the positions below n that are not masked.
void mark_first(size_t count, size_t n, std::span<uint64_t> mask) {
  for (size_t word = 0; count > 0 && word < mask.size(); ++word) {
    uint64_t open = ~mask[word];
    if (word == n / 64) open &= (uint64_t{1} << n % 64) - 1;
    const uint64_t taken = lowest_bits(open, count);
    count -= static_cast<size_t>(std::popcount(taken));
    mask[word] |= taken;
  }
}

/// Copies the masked elements to `space`, of whole words of 64.
template <class Source>
void gather(const Source& source, size_t n, std::span<const uint64_t> mask, float* space) {
  for (size_t word = 0; word < n / 64; ++word) {
    for (size_t i = 0; i < 64; i += kLanes) {
      space += compress_store(source.at(word * 64 + i), mask[word] >> i, space);
    }
  }
  for (size_t i = n - n % 64; i < n; ++i) {
    if ((mask[i / 64] >> i % 64 & 1) != 0) *space++ = source.one(i);
  }
}

/// Exact in any case: the guess only leaves fewer elements to search, and one that leaves too few is dropped
/// for all that are not zero.
template <class Source>
std::span<float> select(const Source& source, size_t n, size_t k, SelectScratch& scratch,
                        std::span<uint64_t> mask) {
  // Behind the streams' candidates, room for those that find_threshold() copies.
  const size_t needed = n + n / 8 + (Source::kStreams + 4) * kSlack;
  if (scratch.candidates.size() < needed) scratch.candidates.resize(needed);
  float* const space = scratch.candidates.data();
  const auto [bound, hint] = guess(source, n, k);
  int64_t low = bound - 1;
  Candidates found = collect<Source::kStreams>(source, n, bound, space, mask);
  if (found.count < k && bound > 1) {
    low = 0;
    found = collect<1>(source.again(), n, 1, space, mask);
  }
  if (found.count > k) {
    if (scratch.kept.size() < mask.size() + 2) scratch.kept.resize(mask.size() + 2);
    const auto threshold = find_threshold(found, k, {low, found.count}, hint, space + found.words() * 64);
    narrow(found, threshold, scratch.kept.data());
    narrow_mask(scratch.kept.data(), mask);
  }
  if (found.count < k) {  // the rest are zeros
    mark_first(k - found.count, n, mask);
    gather(source.again(), n, mask, space);
  }
  return {space, k};
}

}  // namespace

std::span<float> select_plain(const float* x, size_t n, size_t k, SelectScratch& scratch,
                              std::span<uint64_t> mask) {
  return select(Plain{x}, n, k, scratch, mask);
}

std::span<float> select_sums(const float* x, const float* y, float* sums, size_t n, size_t k,
                             SelectScratch& scratch, std::span<uint64_t> mask) {
  return select(Sums{x, y, sums}, n, k, scratch, mask);
}

std::span<float> select_differences(const float* x, const float* y, size_t n, size_t k, SelectScratch& scratch,
                                    std::span<uint64_t> mask) {
  return select(Differences{x, y}, n, k, scratch, mask);
}

void select_draws(Dither draws, size_t n, size_t k, SelectScratch& scratch, std::span<uint64_t> mask) {
  select(Draws{draws}, n, k, scratch, mask);
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(select_plain);
HWY_EXPORT(select_sums);
HWY_EXPORT(select_differences);
HWY_EXPORT(select_draws);

std::span<float> select_largest(std::span<const float> x, size_t k, SelectScratch& scratch,
                                std::span<uint64_t> mask) {
  return STRAIT_KERNEL(select_plain)(x.data(), x.size(), k, scratch, mask);
}

std::span<float> select_largest_of_sums(std::span<const float> x, std::span<const float> y,
                                        std::span<float> sums, size_t k, SelectScratch& scratch,
                                        std::span<uint64_t> mask) {
  return STRAIT_KERNEL(select_sums)(x.data(), y.data(), sums.data(), x.size(), k, scratch, mask);
}

std::span<float> select_largest_of_differences(std::span<const float> x, std::span<const float> y, size_t k,
                                               SelectScratch& scratch, std::span<uint64_t> mask) {
  return STRAIT_KERNEL(select_differences)(x.data(), y.data(), x.size(), k, scratch, mask);
}

void select_least_draws(Dither draws, size_t n, size_t k, SelectScratch& scratch, std::span<uint64_t> mask) {
  STRAIT_KERNEL(select_draws)(draws, n, k, scratch, mask);
}

}  // namespace strait::kernels
#endif
