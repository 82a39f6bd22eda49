#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strait::kernels {

/// Words of a set of positions out of n: bit i % 64 of word i / 64.
constexpr size_t mask_words(size_t n) { return (n + 63) / 64; }

/// What selection works in; need not be initialised, and grows to the size of the largest input at most.
struct SelectScratch {
  std::array<std::array<uint32_t, 2048>, 4> counts;
  std::vector<float> candidates;  ///< elements that a guess leaves in question
  std::vector<uint32_t> inside;   ///< magnitudes of those near the threshold
};

/// Marks exactly `k` elements of largest magnitude in `mask`; of equal magnitudes the lower index wins.
/// Magnitudes are compared as integers: NaN above infinity above every number. Requires 1 <= k <= n,
/// n = x.size() < 2^32 and mask.size() == mask_words(n); bits from n on are zero.
void select_largest(std::span<const float> x, size_t k, SelectScratch& scratch, std::span<uint64_t> mask);

/// Copies the marked elements in the order of their index. `out` has one element a set bit.
void gather_marked(std::span<const float> x, std::span<const uint64_t> mask, std::span<float> out);

/// The reverse: puts `values` at the marked positions and +0 everywhere else, in the order of their index.
void scatter_marked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out);

}  // namespace strait::kernels
