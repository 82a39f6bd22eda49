#include "strait/kernels/index_code.h"

#include <cstring>

#include "strait/kernels/marked.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/index_code.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>
//
#include "strait/kernels/dispatch.h"
#include "strait/kernels/gaps-inl.h"

// Plain code, for which targets have instructions that count and move bits.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out) {
  BitWriter bits(out);
  put_gaps(mask, r, bits);
  bits.finish();
  if (bits.full()) return std::nullopt;
  return bits.size();
}

bool read_rice(std::span<const std::byte> in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
  BitReader bits(in);
  return take_gaps(bits, n, k, r, mask) && is_finished(bits);
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

bool read_bitmap(std::span<const std::byte> in, size_t n, size_t k, std::span<uint64_t> mask) {
  if (in.size() != bitmap_size(n)) return false;
  mask.back() = 0;
  std::memcpy(mask.data(), in.data(), in.size());
  if (n % 64 != 0 && mask.back() >> n % 64 != 0) return false;
  return count_marked(mask) == k;
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

std::optional<size_t> write_rice(std::span<const uint64_t> mask, unsigned r, std::span<std::byte> out) {
  return STRAIT_KERNEL(write_rice)(mask, r, out);
}

bool read_rice(std::span<const std::byte> in, size_t n, size_t k, unsigned r, std::span<uint64_t> mask) {
  return STRAIT_KERNEL(read_rice)(in, n, k, r, mask);
}

}  // namespace strait::kernels
#endif
