#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strait/kernels/quantise.h"

namespace strait::kernels {

/// What selection works in; it grows to the size of the largest input and stays so.
struct SelectScratch {
  std::vector<float> candidates;  ///< elements that may be among the largest, in the order of their index
  std::vector<uint64_t> kept;     ///< which of them are
};

/// TopK (paper, section 2.3): marks the k elements of x of largest magnitude in `mask` (masked.h) and gives
/// them in the order of their index, in `scratch`, where they stay until the next call. Of equal magnitudes the
/// lower index wins. Magnitudes are compared as integers: NaN above infinity above every number. Requires 1 <=
/// k <= n, n = x.size() < 2^32 and mask.size() == mask_words(n); bits from n on become zero.
std::span<float> select_largest(std::span<const float> x, size_t k, SelectScratch& scratch,
                                std::span<uint64_t> mask);

/// The same among the sums x + y, which go to `sums`; that may be y.
std::span<float> select_largest_of_sums(std::span<const float> x, std::span<const float> y,
                                        std::span<float> sums, size_t k, SelectScratch& scratch,
                                        std::span<uint64_t> mask);

/// The same among the differences x - y.
std::span<float> select_largest_of_differences(std::span<const float> x, std::span<const float> y, size_t k,
                                               SelectScratch& scratch, std::span<uint64_t> mask);

/// Marks the k of n positions with the least draws; of equal draws the lower position wins. The draw of
/// position i is draw_at(draws, draws.first_index + i) without its last bit. The same requirements.
void select_least_draws(Dither draws, size_t n, size_t k, SelectScratch& scratch, std::span<uint64_t> mask);

}  // namespace strait::kernels
