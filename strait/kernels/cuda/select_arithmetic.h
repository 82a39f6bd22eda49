#pragma once

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"

namespace strait::kernels::cuda {

// TopK by radix: the magnitude of the k-th largest element is found digit by digit, from the highest on, each
// by counting how often each of its values is there among the elements that agree with the digits before. Then
// it is known of every element whether it is kept: larger ones are, and of equal ones so many as are left, by
// their index.

/// Digits of a magnitude's 31 bits.
constexpr uint32_t kDigits = 3;

/// Bits behind a digit. The first one is the exponent and 3 bits of the mantissa.
constexpr uint32_t shift_of(uint32_t digit) { return 20 - 10 * digit; }

/// Values of a digit.
constexpr uint32_t bins_of(uint32_t digit) { return digit == 0 ? 2048 : 1024; }

/// The most values of a digit.
constexpr uint32_t kMostBins = 2048;

/// The value of a magnitude's digit.
constexpr uint32_t digit_of(uint32_t magnitude, uint32_t digit) {
  return magnitude >> shift_of(digit) & (bins_of(digit) - 1);
}

/// What is known of the k-th largest magnitude behind some digits.
struct Threshold {
  uint32_t magnitude = 0;  ///< with zeros for the digits to come
  uint32_t wanted = 0;     ///< elements of these digits that are kept; k before the first digit

  /// Whether an element has all digits before this one in common.
  constexpr bool is_candidate(uint32_t of, uint32_t digit) const {
    return digit == 0 || of >> shift_of(digit - 1) == magnitude >> shift_of(digit - 1);
  }
  /// What is known behind the digit, whose value is `bin`; `above` candidates have larger ones.
  constexpr Threshold behind(uint32_t digit, uint32_t bin, uint32_t above) const {
    return {magnitude | bin << shift_of(digit), wanted - above};
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
  /// How many of them are kept where `wanted` of the equal ones are.
  constexpr uint32_t kept(uint32_t wanted) const { return above() + least_of(equal(), wanted); }
};

}  // namespace strait::kernels::cuda
