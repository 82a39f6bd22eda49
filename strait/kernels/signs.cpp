#include "strait/kernels/signs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/signs.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/blocks-inl.h"
#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

void pack_signs(std::span<const float> x, std::span<std::byte> out) {
  constexpr uint64_t kGather = 0x0102040810204080;  // moves the low bits of eight bytes into the highest byte
  std::span<std::byte> left = out;
  in_small_blocks(x, [&](const float* block, size_t count) {
    alignas(64) std::array<uint8_t, kSmallBlock> signs;
    for (size_t i = 0; i < kSmallBlock; ++i) signs[i] = block[i] < 0 ? 1 : 0;
    std::array<std::byte, kSmallBlock / 8> packed;
    for (size_t i = 0; i < packed.size(); ++i) {
      uint64_t eight = 0;
      std::memcpy(&eight, signs.data() + 8 * i, sizeof eight);
      packed[i] = static_cast<std::byte>(eight * kGather >> 56);
    }
    if (count == kSmallBlock) {
      std::memcpy(left.data(), packed.data(), packed.size());
      left = left.subspan(packed.size());
    } else {
      std::copy_n(packed.begin(), left.size(), left.begin());
    }
  });
}

void unpack_signs(std::span<const std::byte> in, float if_clear, float if_set, std::span<float> out) {
  const auto clear = std::bit_cast<uint32_t>(if_clear);
  const uint32_t change = clear ^ std::bit_cast<uint32_t>(if_set);
  size_t begin = 0;
  for (; begin + 32 <= out.size(); begin += 32) {
    for (size_t i = 0; i < 32; i += 16) prefetch(out.data() + begin + i + kAhead);
    uint32_t bits = 0;
    std::memcpy(&bits, in.data() + begin / 8, sizeof bits);
    for (uint32_t i = 0; i < 32; ++i) {
      out[begin + i] = std::bit_cast<float>(clear ^ (change & (0 - (bits >> i & 1))));
    }
  }
  for (; begin < out.size(); ++begin) {
    const bool is_set = (std::to_integer<unsigned>(in[begin / 8]) >> (begin % 8) & 1) != 0;
    out[begin] = is_set ? if_set : if_clear;
  }
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(pack_signs);
HWY_EXPORT(unpack_signs);

void pack_signs(std::span<const float> x, std::span<std::byte> out) { STRAIT_KERNEL(pack_signs)(x, out); }
void unpack_signs(std::span<const std::byte> in, float if_clear, float if_set, std::span<float> out) {
  STRAIT_KERNEL(unpack_signs)(in, if_clear, if_set, out);
}

}  // namespace strait::kernels
#endif
