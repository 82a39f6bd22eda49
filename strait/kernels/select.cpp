#include "strait/kernels/select.h"

#include <algorithm>
#include <bit>
#include <cstring>

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

}  // namespace

void select_largest(std::span<const float> x, size_t k, SelectScratch& scratch, std::span<uint64_t> mask) {
  const Threshold bound = find_threshold(x, k, scratch);
  const uint32_t threshold = bound.value;
  size_t ties = bound.ties;
  for (size_t word = 0; word < mask.size(); ++word) {
    const float* part = x.data() + word * 64;
    const size_t count = std::min<size_t>(64, x.size() - word * 64);
    uint64_t bits = flag_word(part, count, [threshold](uint32_t m) { return m > threshold; });
    if (ties > 0) {
      const uint64_t equal = flag_word(part, count, [threshold](uint32_t m) { return m == threshold; });
      const auto found = static_cast<size_t>(std::popcount(equal));
      bits |= found <= ties ? equal : lowest_bits(equal, ties);
      ties -= std::min(found, ties);
    }
    mask[word] = bits;
  }
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
