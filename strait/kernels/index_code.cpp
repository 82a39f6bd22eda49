#include "strait/kernels/index_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "strait/base/bits.h"
#include "strait/kernels/marked.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/index_code.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>
//
#include "strait/kernels/dispatch.h"

// Plain code, for which targets have instructions that count and move bits.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

namespace {

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

}  // namespace

std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out) {
  constexpr size_t kWords = 64;  // between the two steps
  std::array<uint32_t, kWords * 64 + 8> positions;
  BitWriter bits(out);
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
  bits.finish();
  if (bits.full()) return std::nullopt;
  return bits.size();
}

bool read_rice(std::span<const std::byte> in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
  BitReader bits(in);
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
  if (bits.position() > bits.size() || (bits.position() + 7) / 8 != in.size()) return false;
  return bits.size() == bits.position() || bits.peek() == 0;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(write_rice);
HWY_EXPORT(read_rice);

void write_bitmap(std::span<const uint64_t> mask, std::span<std::byte> out) {
  std::memcpy(out.data(), mask.data(), out.size());
}

namespace {

/// Whether a mask of whole words marks k positions, all below n.
bool is_set_of(std::span<const uint64_t> mask, size_t n, size_t k) {
  return (n % 64 == 0 || mask.back() >> n % 64 == 0) && count_marked(mask) == k;
}

}  // namespace

bool read_bitmap(std::span<const std::byte> in, size_t n, size_t k, std::span<uint64_t> mask) {
  if (in.size() != bitmap_size(n)) return false;
  mask.back() = 0;
  std::memcpy(mask.data(), in.data(), in.size());
  return is_set_of(mask, n, k);
}

unsigned rice_parameter(size_t n, size_t k) {
  double go_on = static_cast<double>(n - k) / static_cast<double>(n);
  unsigned best = 0;
  double best_cost = 0;
  for (unsigned r = 0; r <= kMaxRiceParameter; ++r, go_on *= go_on) {
    const double cost = 1.0 + r + go_on / (1.0 - go_on);
    if (r == 0 || cost < best_cost) {
      best = r;
      best_cost = cost;
    }
  }
  return best;
}

namespace {

// With r = 0 a gap is as many zeros and a one: the code is the bitmap up to the byte of its last one.

std::optional<size_t> write_to_last(std::span<const uint64_t> mask, std::span<std::byte> out) {
  size_t words = mask.size();
  while (words > 0 && mask[words - 1] == 0) --words;
  const size_t bits = words == 0 ? 0 : words * 64 - static_cast<size_t>(std::countl_zero(mask[words - 1]));
  const size_t bytes = (bits + 7) / 8;
  if (bytes > out.size()) return std::nullopt;
  std::memcpy(out.data(), mask.data(), bytes);
  return bytes;
}

bool read_to_last(std::span<const std::byte> in, size_t n, size_t k, std::span<uint64_t> mask) {
  if (in.size() > bitmap_size(n) || (!in.empty() && in.back() == std::byte{0})) return false;
  std::ranges::fill(mask, uint64_t{0});
  std::memcpy(mask.data(), in.data(), in.size());
  return is_set_of(mask, n, k);
}

}  // namespace

std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out) {
  return r == 0 ? write_to_last(mask, out) : STRAIT_KERNEL(write_rice)(mask, r, out);
}

bool read_rice(std::span<const std::byte> in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
  return r == 0 ? read_to_last(in, n, k, mask) : STRAIT_KERNEL(read_rice)(in, n, k, r, mask);
}

}  // namespace strait::kernels
#endif
