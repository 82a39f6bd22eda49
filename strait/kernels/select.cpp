#include "strait/kernels/select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

namespace strait::kernels {
namespace {

inline uint32_t magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffff; }

/// Elements of magnitude above `value` are kept, and the first `ties` of those that equal it.
struct Threshold {
  uint32_t value = 0;
  size_t ties = 0;
};

using Counts = std::array<uint32_t, 2048>;

/// The bin in which the k-th largest falls when the first `bins` are emptied from the top; k becomes its
/// rank there.
uint32_t find_bin(const Counts& counts, size_t& k, size_t bins) {
  auto bin = static_cast<uint32_t>(bins) - 1;
  while (k > counts[bin]) k -= counts[bin--];
  return bin;
}

/// Counts all elements by `bin_of(magnitude)`. Four counters a bin, so that a run of equal elements does not
/// wait for its own increments.
template <class BinOf>
void count(std::span<const float> x, SelectScratch& scratch, BinOf bin_of) {
  auto& [a, b, c, d] = scratch.counts;
  for (auto& counts : scratch.counts) counts.fill(0);
  size_t i = 0;
  for (; i + 4 <= x.size(); i += 4) {
    ++a[bin_of(magnitude(x[i]))];
    ++b[bin_of(magnitude(x[i + 1]))];
    ++c[bin_of(magnitude(x[i + 2]))];
    ++d[bin_of(magnitude(x[i + 3]))];
  }
  for (; i < x.size(); ++i) ++a[bin_of(magnitude(x[i]))];
  for (size_t bin = 0; bin < a.size(); ++bin) a[bin] += b[bin] + c[bin] + d[bin];
}

/// Radix selection over the 31 bits of a magnitude: 11, then 10 and 10 within the bin found before.
Threshold find_threshold(std::span<const float> x, size_t k, SelectScratch& scratch) {
  Counts& counts = scratch.counts[0];
  count(x, scratch, [](uint32_t bits) { return bits >> 20; });
  uint32_t prefix = find_bin(counts, k, counts.size());
  for (const unsigned shift : {10U, 0U}) {
    // Elements with another prefix go to 32 bins behind the 1024 that are searched; no branch, because
    // after a ReLU half of the elements are zeros in random places.
    count(x, scratch, [prefix, shift](uint32_t bits) {
      const uint32_t inside = (bits >> shift) & 1023;
      const uint32_t outside = 1024 | (bits & 31);
      return bits >> (shift + 10) == prefix ? inside : outside;
    });
    prefix = prefix << 10 | find_bin(counts, k, 1024);
  }
  return {prefix, k};
}

/// 64 flags of 0 or 1 as the bits of a word: the product moves eight bytes' low bits into its top byte.
inline uint64_t gather_flags(const std::array<uint8_t, 64>& flags) {
  uint64_t word = 0;
  for (unsigned i = 0; i < 8; ++i) {
    uint64_t eight;
    std::memcpy(&eight, flags.data() + i * 8, sizeof(eight));
    word |= (eight * 0x0102040810204080 >> 56) << (i * 8);
  }
  return word;
}

template <class Test>
uint64_t flag_word(const float* x, size_t count, Test test) {
  alignas(64) std::array<uint8_t, 64> flags;
  if (count == 64) {
    for (size_t i = 0; i < 64; ++i) flags[i] = test(magnitude(x[i])) ? 1 : 0;
  } else {
    flags.fill(0);
    for (size_t i = 0; i < count; ++i) flags[i] = test(magnitude(x[i])) ? 1 : 0;
  }
  return gather_flags(flags);
}

/// The lowest `count` set bits of a word.
uint64_t lowest_bits(uint64_t word, size_t count) {
  uint64_t kept = 0;
  for (; count > 0; --count) {
    kept |= word & (0 - word);
    word &= word - 1;
  }
  return kept;
}

/// A magnitude that somewhat more than k elements reach, as far as a sample tells; 0 where it tells nothing.
uint32_t guess_bound(std::span<const float> x, size_t k) {
  constexpr size_t kRun = 8;
  std::array<uint32_t, 1024> sample;
  const size_t runs = sample.size() / kRun;
  if (x.size() < 4 * sample.size()) return 0;
  const size_t stride = x.size() / runs;
  for (size_t i = 0; i < sample.size(); ++i) sample[i] = magnitude(x[i / kRun * stride + i % kRun]);
  // Four standard deviations of the number of sampled elements that are among the k largest.
  const double share = static_cast<double>(k) / static_cast<double>(x.size());
  const double expected = share * sample.size();
  const auto rank = static_cast<size_t>(expected + 4 * std::sqrt(expected * (1 - share)) + 1);
  if (rank >= sample.size()) return 0;
  const auto place = sample.begin() + static_cast<ptrdiff_t>(rank);
  std::nth_element(sample.begin(), place, sample.end(), std::greater());
  return *place;
}

/// Marks the elements that reach the bound, and gives them in the order of their index.
std::span<const float> collect(std::span<const float> x, uint32_t bound, std::vector<float>& space,
                               std::span<uint64_t> mask) {
  if (space.size() < x.size()) space.resize(x.size());
  float* next = space.data();
  for (size_t word = 0; word < mask.size(); ++word) {
    const float* part = x.data() + word * 64;
    const size_t count = std::min<size_t>(64, x.size() - word * 64);
    mask[word] = flag_word(part, count, [bound](uint32_t m) { return m >= bound; });
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) *next++ = part[std::countr_zero(bits)];
  }
  return {space.data(), next};
}

/// The threshold among elements that all reach the bound: one count over the range that they have, then an
/// exact search in the bin that it leads to.
Threshold find_threshold_above(uint32_t bound, std::span<const float> x, size_t k, SelectScratch& scratch) {
  uint32_t most = bound;
  for (const float value : x) most = std::max(most, magnitude(value));
  const auto width = static_cast<unsigned>(std::bit_width(most - bound));
  const unsigned shift = width > 11 ? width - 11 : 0;
  const auto bin_of = [bound, shift](uint32_t bits) { return (bits - bound) >> shift; };
  count(x, scratch, bin_of);
  const uint32_t bin = find_bin(scratch.counts[0], k, scratch.counts[0].size());
  auto& inside = scratch.inside;
  inside.clear();
  for (const float value : x) {
    if (bin_of(magnitude(value)) == bin) inside.push_back(magnitude(value));
  }
  const auto place = inside.begin() + static_cast<ptrdiff_t>(k) - 1;
  std::nth_element(inside.begin(), place, inside.end(), std::greater());
  const uint32_t value = *place;
  const auto above = std::count_if(inside.begin(), place, [value](uint32_t bits) { return bits > value; });
  return {value, k - static_cast<size_t>(above)};
}

/// Of the marked elements, which are the candidates in that order, only those within the threshold stay.
void narrow(std::span<const float> candidates, Threshold threshold, std::span<uint64_t> mask) {
  const float* next = candidates.data();
  for (auto& word : mask) {
    uint64_t kept = 0;
    for (uint64_t bits = word; bits != 0; bits &= bits - 1) {
      const uint32_t m = magnitude(*next++);
      const bool tie = m == threshold.value && threshold.ties > 0;
      threshold.ties -= tie ? 1 : 0;
      kept |= m > threshold.value || tie ? bits & (0 - bits) : 0;
    }
    word = kept;
  }
}

/// Marks the elements within the threshold.
void mark(std::span<const float> x, Threshold threshold, std::span<uint64_t> mask) {
  for (size_t word = 0; word < mask.size(); ++word) {
    const float* part = x.data() + word * 64;
    const size_t count = std::min<size_t>(64, x.size() - word * 64);
    const uint32_t bound = threshold.value;
    uint64_t bits = flag_word(part, count, [bound](uint32_t m) { return m > bound; });
    if (threshold.ties > 0) {
      const uint64_t equal = flag_word(part, count, [bound](uint32_t m) { return m == bound; });
      const auto found = static_cast<size_t>(std::popcount(equal));
      bits |= found <= threshold.ties ? equal : lowest_bits(equal, threshold.ties);
      threshold.ties -= std::min(found, threshold.ties);
    }
    mask[word] = bits;
  }
}

}  // namespace

// Exact in any case: the guess only leaves fewer elements to search, and one that leaves too few is dropped.
void select_largest(std::span<const float> x, size_t k, SelectScratch& scratch, std::span<uint64_t> mask) {
  if (const uint32_t bound = guess_bound(x, k); bound > 0) {
    const auto candidates = collect(x, bound, scratch.candidates, mask);
    if (candidates.size() >= k) {
      narrow(candidates, find_threshold_above(bound, candidates, k, scratch), mask);
      return;
    }
  }
  mark(x, find_threshold(x, k, scratch), mask);
}

void gather_marked(std::span<const float> x, std::span<const uint64_t> mask, std::span<float> out) {
  float* next = out.data();
  for (size_t word = 0; word < mask.size(); ++word) {
    const float* part = x.data() + word * 64;
    if (mask[word] == ~uint64_t{0}) {
      next = std::copy_n(part, 64, next);
      continue;
    }
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) *next++ = part[std::countr_zero(bits)];
  }
}

void scatter_marked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  std::ranges::fill(out, 0.0F);
  const float* next = values.data();
  for (size_t word = 0; word < mask.size(); ++word) {
    float* part = out.data() + word * 64;
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) part[std::countr_zero(bits)] = *next++;
  }
}

}  // namespace strait::kernels
