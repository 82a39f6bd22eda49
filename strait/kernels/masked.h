#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace strait::kernels {

// A set of positions out of n as a mask: bit i % 64 of word i / 64, bits from n on zero.

/// Words of a mask of n positions.
constexpr size_t mask_words(size_t n) { return (n + 63) / 64; }

/// How many positions are in the set.
size_t count_masked(std::span<const uint64_t> mask);

// `values` has one element a masked position, in the order of the positions.

/// Copies the masked elements of x.
void gather_masked(std::span<const float> x, std::span<const uint64_t> mask, std::span<float> values);

/// Puts the values at the masked positions and +0 everywhere else.
void scatter_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out);

/// Puts the values at the masked positions and leaves the others.
void put_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out);

/// Adds the values at the masked positions.
void add_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out);

/// The same; the elements that were at these positions go to `before`. Returns false when a sum is not finite.
bool move_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out,
                 std::span<float> before);

}  // namespace strait::kernels
