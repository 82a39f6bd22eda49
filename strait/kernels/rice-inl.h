// Rice codes of gaps inside a bit stream, once for each target.

#if defined(STRAIT_KERNELS_RICE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef STRAIT_KERNELS_RICE_INL
#undef STRAIT_KERNELS_RICE_INL
#else
#define STRAIT_KERNELS_RICE_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strait/base/bits.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

/// Writes the positions of a word's ones, of which the first is at `begin`; up to 7 more may be overwritten.
/// Eight at a time, whether they are there or not: a branch for each would be guessed wrong for most words.
HWY_INLINE uint32_t* write_positions(uint64_t word, uint32_t begin, uint32_t* out) {
  const auto count = static_cast<unsigned>(std::popcount(word));
  for (unsigned i = 0; i < count; i += 8) {
    for (unsigned j = i; j < i + 8; ++j, word &= word - 1) {
      out[j] = begin + static_cast<uint32_t>(std::countr_zero(word));
    }
  }
  return out + count;
}

/// Appends the code of write_rice() (index_code.h), unpadded.
HWY_INLINE void put_rice(std::span<const uint64_t> mask, unsigned r, BitWriter& out) {
  constexpr size_t kWords = 64;  // between the two steps
  std::array<uint32_t, kWords * 64 + 8> positions;
  BitWriter bits = out;
  const uint32_t low_mask = (uint32_t{1} << r) - 1;
  uint32_t expected = 0;  // the position that a gap of zero would give
  for (size_t begin = 0; begin < mask.size() && !bits.full(); begin += kWords) {
    uint32_t* end = positions.data();
    for (size_t word = begin; word < std::min(begin + kWords, mask.size()); ++word) {
      end = write_positions(mask[word], static_cast<uint32_t>(word * 64), end);
    }
    for (const uint32_t* position = positions.data(); position != end; ++position) {
      const uint32_t gap = *position - expected;
      const uint32_t quotient = gap >> r;
      const uint64_t tail = (gap & low_mask) << 1 | 1;
      expected = *position + 1;
      if (quotient + 1 + r <= 56) {
        bits.put(tail << quotient, quotient + 1 + r);
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
HWY_INLINE bool take_rice(BitReader& in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
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
