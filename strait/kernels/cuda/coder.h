#pragma once

#include <math.h>  // NOLINT(modernize-deprecated-headers): fmaf() and others where both compilers have them

#include <cstdint>

#include "strait/kernels/cuda/host_device.h"
#include "strait/kernels/cuda/octet.h"
#include "strait/kernels/quantise.h"

namespace strait::kernels::cuda {

// A coder says how the elements of a group become codes. Each has
//
//   Extent           what is looked for in a group: maxima of unsigned integers, with all bits 0 where nothing
//                    was seen, so that the order in which elements are seen makes no difference
//   see, join        that of an octet, and of two Extents
//   Line             what the codes are relative to; line(extent), and is_sendable(line)
//   kHeaderSize      bytes of a line in the message; put_header(), read_header(), is_received(line)
//   divisor          Divisor or PowerOfTwo of a line
//   dividend         what of an element is divided by that
//   bits             of a code
//   code             of an element, of which the quotient is given, at its place in the message
//   sees_last_bits   whether a code may depend on the last bits of a quotient below 2^-20
//   value            decoded
//   is_code          whether the code can be one
//
// and is a plain struct, a kernel's argument.

/// Rounding of codes: to nearest, half to even, or stochastic with a dither.
struct Rounding {
  bool is_stochastic = false;  ///< whether the dither is used
  Dither dither;               ///< of the message's element 0
};

/// A positive number by which several are divided that are at most 2^10 times as large. A division takes a
/// processor of a GPU a dozen instructions and a branch; with the reciprocal at hand it takes three, to the
/// same bits: the quotient by the nearest reciprocal, corrected by what it leaves (P. Markstein, "Computation
/// of elementary functions on the IBM RISC System/6000 processor", 1990). That one correction is always enough
/// is what tests/kernels/cuda_arithmetic_test.cpp goes through.
struct Divisor {
  float by = 1;          ///< the number
  float reciprocal = 1;  ///< the float nearest to 1 / by
  bool is_plain = true;  ///< whether quick() may be used

  /// Of a number.
  static constexpr Divisor of(float number) {
    return {number, 1 / number, number >= 0x1p-60F && number <= 0x1p60F};
  }
  /// Whether quick() has all bits right of such a small quotient, too.
  static constexpr bool is_plain_for(float x) {
    constexpr uint32_t kLeast = 0x21800000;      // 2^-60
    return magnitude_bits(x) - 1 >= kLeast - 1;  // or 0
  }
  /// x / by, but +0 for -0; a quotient below 2^-20 may differ from that in its last bits, and stays below
  /// 2^-19.
  STRAIT_HOST_DEVICE float quick(float x) const {
    const float nearly = x * reciprocal;
    return fmaf(fmaf(-by, nearly, x), reciprocal, nearly);
  }
  /// x / by.
  constexpr float exact(float x) const { return x / by; }
};

/// The same for 2^-127 to 2^127, whose reciprocal is exact.
struct PowerOfTwo {
  float reciprocal = 1;                   ///< of the number
  static constexpr bool is_plain = true;  ///< always

  /// Of a number.
  static constexpr PowerOfTwo of(float number) { return {1 / number}; }
  /// Always.
  static constexpr bool is_plain_for(float /*x*/) { return true; }
  /// The quotient.
  constexpr float quick(float x) const { return x * reciprocal; }
  /// The same.
  constexpr float exact(float x) const { return quick(x); }
};

/// The codes of an octet of a group, which begins at `begin` of the message.
template <class Coder, class OfLine>
STRAIT_HOST_DEVICE void code_octet(const Coder& coder, const float (&x)[kOctet],
                                   const typename Coder::Line& line, const OfLine& divisor, uint64_t begin,
                                   uint32_t (&codes)[kOctet]) {
  float quotients[kOctet];
  for (uint32_t i = 0; i < kOctet; ++i) quotients[i] = coder.dividend(x[i], line);
  bool is_plain = divisor.is_plain;
  if (coder.sees_last_bits()) {
    for (const float quotient : quotients) is_plain = is_plain && divisor.is_plain_for(quotient);
  }
  if (is_plain) {
    for (float& quotient : quotients) quotient = divisor.quick(quotient);
  } else {
    for (float& quotient : quotients) quotient = divisor.exact(quotient);
  }
  for (uint32_t i = 0; i < kOctet; ++i) codes[i] = coder.code(x[i], quotients[i], begin + i);
}

/// Puts the first element behind the last of a short octet, so that whatever is made of all is right for those
/// that count.
constexpr void fill_octet(float (&x)[kOctet], uint32_t count) {
  for (uint32_t i = 1; i < kOctet; ++i) {
    if (i >= count) x[i] = x[0];
  }
}

}  // namespace strait::kernels::cuda
