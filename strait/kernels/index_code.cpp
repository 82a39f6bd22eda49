#include "strait/kernels/index_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "strait/base/bits.h"

namespace strait::kernels {

void write_bitmap(std::span<const uint64_t> mask, std::span<std::byte> out) {
  std::memcpy(out.data(), mask.data(), out.size());
}

bool read_bitmap(std::span<const std::byte> in, size_t n, std::span<uint32_t> positions) {
  if (in.size() != bitmap_size(n)) return false;
  size_t found = 0;
  for (size_t begin = 0; begin < in.size(); begin += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, in.data() + begin, std::min(sizeof(word), in.size() - begin));
    if (found + static_cast<size_t>(std::popcount(word)) > positions.size()) return false;
    for (; word != 0; word &= word - 1) {
      positions[found++] = static_cast<uint32_t>(begin * 8 + static_cast<size_t>(std::countr_zero(word)));
    }
  }
  return found == positions.size() && positions.back() < n;
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

std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out) {
  BitWriter bits(out);
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
  bits.finish();
  if (bits.full()) return std::nullopt;
  return bits.size();
}

bool read_rice(std::span<const std::byte> in, size_t n, unsigned r, std::span<uint32_t> positions) {
  BitReader bits(in);
  const uint64_t low_mask = (uint64_t{1} << r) - 1;
  uint64_t expected = 0;
  for (auto& position : positions) {
    uint64_t quotient = 0;
    uint64_t window = bits.peek();
    // 57 bits are certain to be there: a window whose low 26 bits hold the one also holds the r low bits.
    while ((window & ((uint64_t{1} << 26) - 1)) == 0) {
      if (bits.position() >= bits.size()) return false;  // so the loop ends with the bytes
      bits.skip(26);
      quotient += 26;
      window = bits.peek();
    }
    const auto zeros = static_cast<unsigned>(std::countr_zero(window));
    quotient += zeros;
    if (quotient > n >> r) return false;
    const uint64_t gap = quotient << r | (window >> (zeros + 1) & low_mask);
    bits.skip(zeros + 1 + r);
    if (gap >= n - expected) return false;
    expected += gap;
    position = static_cast<uint32_t>(expected++);
  }
  if (bits.position() > bits.size() || (bits.position() + 7) / 8 != in.size()) return false;
  return bits.size() == bits.position() || bits.peek() == 0;
}

}  // namespace strait::kernels
