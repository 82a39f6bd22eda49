#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strait::kernels {

/// What selection works in; it grows to the size of the largest input and stays so.
struct SelectScratch {
  std::vector<float> candidates;  ///< elements that may be among the largest, in the order of their index
  std::vector<uint64_t> kept;     ///< which of them are
};

// Marks the k = kept.size() elements of largest magnitude in `mask` (marked.h) and copies them to `kept`, in
// the order of their index; of equal magnitudes the lower index wins. Magnitudes are compared as integers: NaN
// above infinity above every number. Requires 1 <= k <= n, n = x.size() < 2^32 and mask.size() ==
// mask_words(n); bits from n on become zero.

/// Among the elements of x.
void select_largest(std::span<const float> x, SelectScratch& scratch, std::span<uint64_t> mask,
                    std::span<float> kept);

/// Among the sums x + y, which replace y.
void select_largest_of_sums(std::span<const float> x, std::span<float> y, SelectScratch& scratch,
                            std::span<uint64_t> mask, std::span<float> kept);

/// Among the differences x - y.
void select_largest_of_differences(std::span<const float> x, std::span<const float> y, SelectScratch& scratch,
                                   std::span<uint64_t> mask, std::span<float> kept);

}  // namespace strait::kernels
