#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace strait::kernels {

// Two lossless codes of a set of k positions out of n, 1 <= k <= n < 2^32. A set is a mask (masked.h).

/// The largest Rice parameter that a message may name.
constexpr unsigned kMaxRiceParameter = 30;

/// Bytes of a bitmap of n positions.
constexpr size_t bitmap_size(size_t n) { return (n + 7) / 8; }

/// Writes bit i % 8 of byte i / 8 for position i. out.size() == bitmap_size(n).
void write_bitmap(std::span<const uint64_t> mask, std::span<std::byte> out);

/// Returns false when the bitmap does not hold exactly k bits, all of them below n, or is not of
/// bitmap_size(n) bytes. Then the mask is undefined. mask.size() == mask_words(n).
bool read_bitmap(std::span<const std::byte> in, size_t n, size_t k, std::span<uint64_t> mask);

/// The Rice parameter for k of n positions: the r that minimises the expected bits of one gap,
/// 1 + r + s / (1 - s), where s = (1 - k / n)^(2^r) is the chance that the quotient continues. The smallest
/// such r. Computed in double from (n - k) / n by squaring, so that every machine finds the same.
unsigned rice_parameter(size_t n, size_t k);

/// The bits that a Rice code of k of n positions with that parameter should take.
double rice_bits(size_t n, size_t k);

/// Bytes that a Rice code of k of n positions needs at most.
constexpr size_t rice_bound(size_t n, size_t k, unsigned r) { return (((n - k) >> r) + k * (1 + r) + 7) / 8; }

/// Writes, for every position, the gap g = position - previous - 1 (the first: position) as g >> r zero
/// bits, a one bit, and the r low bits of g; LSB-first, padded with zero bits. Returns the bytes used, or
/// nothing when `out` is too small; `out` may be overwritten as a whole.
std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out);

/// Returns false when `in` is not the code of k positions below n, to the last padding bit. Then the mask is
/// undefined. Requires r <= kMaxRiceParameter and mask.size() == mask_words(n).
bool read_rice(std::span<const std::byte> in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask);

}  // namespace strait::kernels
