#include "strait/kernels/copy.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace strait::kernels {

bool copy_finite(std::span<const float> x, std::span<std::byte> out) {
  // Blocks that stay in the first-level cache between the copy and the check.
  constexpr size_t kBlock = 2048;
  constexpr uint32_t kMagnitude = 0x7fffffff;
  constexpr uint32_t kInfinity = 0x7f800000;
  uint32_t largest = 0;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const auto block = x.subspan(begin, std::min(kBlock, x.size() - begin));
    std::memcpy(out.data() + begin * sizeof(float), block.data(), block.size_bytes());
    for (const float value : block) largest = std::max(largest, std::bit_cast<uint32_t>(value) & kMagnitude);
  }
  return largest < kInfinity;
}

}  // namespace strait::kernels
