#pragma once

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"

namespace strait::kernels::cuda {

// TopK by radix: the magnitude of the k-th largest element is found digit by digit, from the highest on, each
// by counting how often each of its values is there among the elements that agree with the digits before. Then
// it is known of every element whether it is kept: larger ones are, and of equal ones so many as are left, by
// their index.

/// Digits of a magnitude's 31 bits, or of fewer.
constexpr uint32_t kDigits = 3;

/// The most values of a digit.
constexpr uint32_t kMostBins = 2048;

/// The digits of magnitudes that are known to be at least `low` and below low + 2^bits.
struct Digits {
  uint32_t low = 0;    ///< what a magnitude's digits are counted from
  uint32_t bits = 31;  ///< of all digits

  /// Of magnitudes from `low` to `high`.
  static constexpr Digits between(uint32_t low, uint32_t high) {
    uint32_t bits = 0;
    while ((high - low) >> bits != 0) ++bits;
    return {low, bits};
  }
  /// Bits behind a digit: the first digit has up to 11 bits, the others up to 10.
  constexpr uint32_t shift(uint32_t digit) const {
    const uint32_t with_it = 11 + 10 * digit;
    return bits > with_it ? bits - with_it : 0;
  }
  /// Whether there is such a digit.
  constexpr bool has(uint32_t digit) const { return digit == 0 || shift(digit - 1) != 0; }
  /// How many values a digit has.
  constexpr uint32_t values(uint32_t digit) const {
    return digit == 0 ? kMostBins : 1U << (shift(digit - 1) - shift(digit));
  }
  /// The value of a magnitude's digit.
  constexpr uint32_t value(uint32_t magnitude, uint32_t digit) const {
    return (magnitude - low) >> shift(digit) & (values(digit) - 1);
  }
};

/// What is known of the k-th largest magnitude behind some digits.
struct Threshold {
  uint32_t magnitude = 0;  ///< with zeros for the digits to come; Digits::low before the first one
  uint32_t wanted = 0;     ///< elements of these digits that are kept; k before the first digit

  /// Whether an element has all digits before this one in common.
  constexpr bool is_candidate(uint32_t of, const Digits& digits, uint32_t digit) const {
    if (digit == 0) return true;
    const uint32_t behind = digits.shift(digit - 1);
    return (of - digits.low) >> behind == (magnitude - digits.low) >> behind;
  }
  /// What is known behind the digit, whose value is `bin`; `above` candidates have larger ones.
  constexpr Threshold behind(const Digits& digits, uint32_t digit, uint32_t bin, uint32_t above) const {
    return {magnitude + (bin << digits.shift(digit)), wanted - above};
  }
  /// Whether an element is kept, behind the last digit; `equal_before` of lower index have the threshold's
  /// magnitude.
  constexpr bool keeps(uint32_t of, uint32_t equal_before) const {
    return of > magnitude || (of == magnitude && equal_before < wanted);
  }
};

/// How many elements are above a threshold, and how many equal it, in one number, so that one sum is that of
/// both. Both are below 2^31; two bits are free.
struct Counts {
  uint64_t packed = 0;  ///< above << 31 | equal

  /// Of these numbers.
  static constexpr Counts of(uint32_t above, uint32_t equal) {
    return {static_cast<uint64_t>(above) << 31 | equal};
  }
  /// Elements above.
  constexpr uint32_t above() const { return static_cast<uint32_t>(packed >> 31); }
  /// Elements that are equal.
  constexpr uint32_t equal() const { return static_cast<uint32_t>(packed & 0x7fffffff); }
  /// Both with those of a part that follows.
  constexpr Counts then(Counts part) const { return {packed + part.packed}; }
  /// How many of them are kept where `wanted` of the equal ones are.
  constexpr uint32_t kept(uint32_t wanted) const { return above() + least_of(equal(), wanted); }
};

}  // namespace strait::kernels::cuda
