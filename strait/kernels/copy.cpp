#include "strait/kernels/copy.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace strait::kernels {
namespace {

// Blocks that stay in the first-level cache between the copy and the check.
constexpr size_t kBlock = 2048;
constexpr uint32_t kInfinity = 0x7f800000;

/// The larger of `largest` and the block's largest magnitude, as bits; a NaN counts as above infinity.
uint32_t largest_magnitude(std::span<const float> block, uint32_t largest) {
  for (const float value : block) largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffff);
  return largest;
}

}  // namespace

bool copy_finite(std::span<const float> x, std::span<std::byte> out) {
  uint32_t largest = 0;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const auto block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    std::memcpy(out.data() + begin * sizeof(float), block.data(), block.size_bytes());
    largest = largest_magnitude(block, largest);
  }
  return largest < kInfinity;
}

bool copy_finite(std::span<const std::byte> in, std::span<float> out) {
  uint32_t largest = 0;
  for (size_t begin = 0; begin < out.size(); begin += kBlock) {
    const auto block = out.subspan(begin, std::min(kBlock, out.size() - begin));
    std::memcpy(block.data(), in.data() + begin * sizeof(float), block.size_bytes());
    largest = largest_magnitude(block, largest);
  }
  return largest < kInfinity;
}

bool all_finite(std::span<const float> x) { return largest_magnitude(x, 0) < kInfinity; }

}  // namespace strait::kernels
