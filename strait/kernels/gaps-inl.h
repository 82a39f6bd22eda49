// Rice codes of gaps inside a bit stream, once for each target.

#if defined(STRAIT_KERNELS_GAPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef STRAIT_KERNELS_GAPS_INL
#undef STRAIT_KERNELS_GAPS_INL
#else
#define STRAIT_KERNELS_GAPS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/base/bits.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

/// Appends the code of write_rice() (index_code.h), unpadded.
HWY_INLINE void put_gaps(std::span<const uint64_t> mask, unsigned r, BitWriter& out) {
  BitWriter bits = out;
  const uint64_t low_mask = (uint64_t{1} << r) - 1;
  uint64_t expected = 0;  // the position that a gap of zero would give
  for (size_t word = 0; word < mask.size() && !bits.full(); ++word) {
    for (uint64_t left = mask[word]; left != 0; left &= left - 1) {
      const uint64_t position = word * 64 + static_cast<uint64_t>(std::countr_zero(left));
      const uint64_t gap = position - expected;
      const uint64_t quotient = gap >> r;
      const uint64_t tail = (gap & low_mask) << 1 | 1;
      expected = position + 1;
      if (quotient + 1 + r <= 56) {
        bits.put(tail << quotient, static_cast<unsigned>(quotient) + 1 + r);
      } else {
        bits.put_zeros(quotient);
        bits.put(tail, 1 + r);
      }
    }
  }
  out = bits;
}

/// Takes such a code of k positions below n from the stream, as read_rice() does; what lies behind it is not
/// looked at.
HWY_INLINE bool take_gaps(BitReader& in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
  BitReader bits = in;
  const uint64_t low_mask = (uint64_t{1} << r) - 1;
  std::ranges::fill(mask, uint64_t{0});
  uint64_t window = 0;  // the stream from bits.position() on, of which `left` bits are there
  unsigned left = 0;
  uint64_t expected = 0;
  for (; k > 0; --k) {
    uint64_t quotient = 0;
    auto zeros = static_cast<unsigned>(std::countr_zero(window));
    if (zeros + 1 + r > left) {
      window = bits.peek();
      // 57 bits are certain to be there: a window whose low 26 bits hold the one also holds the r low bits.
      for (; (window & ((uint64_t{1} << 26) - 1)) == 0; window = bits.peek(), quotient += 26) {
        if (bits.position() >= bits.size()) return false;  // so the loop ends with the bytes
        bits.skip(26);
      }
      left = bits.available();
      zeros = static_cast<unsigned>(std::countr_zero(window));
    }
    quotient += zeros;
    if (quotient > n >> r) return false;
    const uint64_t gap = quotient << r | (window >> zeros >> 1 & low_mask);
    const unsigned size = zeros + 1 + r;  // at most 57
    bits.skip(size);
    window >>= size;
    left -= size;
    if (gap >= n - expected) return false;
    expected += gap;
    mask[expected / 64] |= uint64_t{1} << expected % 64;
    ++expected;
  }
  in = bits;
  return true;
}

/// Whether the stream ends here: in its last byte, of which the rest is zero.
HWY_INLINE bool is_finished(const BitReader& bits) {
  if (bits.position() > bits.size() || bits.size() - bits.position() >= 8) return false;
  return bits.size() == bits.position() || bits.peek() == 0;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
