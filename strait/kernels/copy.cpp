#include "strait/kernels/copy.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace strait::kernels {
namespace {

// Blocks that stay in the first-level cache between the copy and the check.
constexpr size_t kBlock = 2048;

/// Whether an exponent of all ones, which NaN and the infinities have, is among the values.
bool has_special(std::span<const float> block) {
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t special = 0;
  for (const float value : block) {
    special |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  }
  return special != 0;
}

}  // namespace

bool copy_finite(std::span<const float> x, std::span<std::byte> out) {
  bool special = false;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const auto block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    std::memcpy(out.data() + begin * sizeof(float), block.data(), block.size_bytes());
    special |= has_special(block);
  }
  return !special;
}

bool copy_finite(std::span<const std::byte> in, std::span<float> out) {
  bool special = false;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const auto block = out.subspan(begin, std::min(kBlock, out.size() - begin));
    std::memcpy(block.data(), in.data() + begin * sizeof(float), block.size_bytes());
    special |= has_special(block);
  }
  return !special;
}

bool all_finite(std::span<const float> x) { return !has_special(x); }

}  // namespace strait::kernels
