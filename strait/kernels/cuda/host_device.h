#pragma once

#include <bit>
#include <cstdint>

// The arithmetic of the kernels is in functions of an element or a group of eight that both compilers take:
// nvcc for the device, and the C++ compiler for the tests. Both give the same bits: float32, one rounding an
// operation. nvcc is called with --fmad=false for this, as the rest of strait is compiled with
// -ffp-contract=off; its division and square root are IEEE's by default, and so are its subnormal numbers.
//
// nvcc is also called with --expt-relaxed-constexpr, by which a constexpr function is one of the device too.

#ifdef __CUDACC__
#define STRAIT_HOST_DEVICE __host__ __device__
#else
#define STRAIT_HOST_DEVICE
#endif

namespace strait::kernels::cuda {

/// The bits of |x|, which as integers are in the order of the magnitudes: NaN above infinity above every
/// number.
constexpr uint32_t magnitude_bits(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffff; }

/// Whether x is neither infinite nor NaN.
constexpr bool is_finite(float x) { return magnitude_bits(x) < 0x7f800000; }

/// The smaller one.
template <class Integer>
constexpr Integer least_of(Integer a, Integer b) {
  return b < a ? b : a;
}

/// The larger one.
template <class Integer>
constexpr Integer greatest_of(Integer a, Integer b) {
  return a < b ? b : a;
}

}  // namespace strait::kernels::cuda
