#include "strait/kernels/index_code.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "strait/kernels/masked.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/index_code.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>
//
#include "strait/kernels/dispatch.h"
#include "strait/kernels/rice-inl.h"

// Plain code, for which targets have instructions that count and move bits.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out) {
  BitWriter bits(out);
  put_rice(mask, r, bits);
  bits.finish();
  if (bits.full()) return std::nullopt;
  return bits.size();
}

bool read_rice(std::span<const std::byte> in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
  BitReader bits(in);
  return take_rice(bits, n, k, r, mask) && is_finished(bits);
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
  return (n % 64 == 0 || mask.back() >> n % 64 == 0) && count_masked(mask) == k;
}

}  // namespace

bool read_bitmap(std::span<const std::byte> in, size_t n, size_t k, std::span<uint64_t> mask) {
  if (in.size() != bitmap_size(n)) return false;
  mask.back() = 0;
  std::memcpy(mask.data(), in.data(), in.size());
  return is_set_of(mask, n, k);
}

namespace {

struct RiceCost {
  unsigned r = 0;
  double of_gap = 0;  ///< expected bits
};

RiceCost cheapest(size_t n, size_t k) {
  double go_on = static_cast<double>(n - k) / static_cast<double>(n);
  RiceCost best;
  for (unsigned r = 0; r <= kMaxRiceParameter; ++r, go_on *= go_on) {
    const double cost = 1.0 + r + go_on / (1.0 - go_on);
    if (r > 0 && cost >= best.of_gap) break;  // it falls to the least and rises from there
    best = {r, cost};
  }
  return best;
}

}  // namespace

unsigned rice_parameter(size_t n, size_t k) { return cheapest(n, k).r; }

double rice_bits(size_t n, size_t k) { return static_cast<double>(k) * cheapest(n, k).of_gap; }

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
  if (in.empty() || in.size() > bitmap_size(n) || in.back() == std::byte{0}) return false;
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
