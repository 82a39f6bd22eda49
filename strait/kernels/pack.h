#pragma once

#include <cstdint>

namespace strait::kernels {

/// Eight codes of b bits, one per byte, moved together into the low 8 * b bits; the first code lowest.
/// 1 <= b <= 8 and every byte is below 2^b.
template <unsigned b>
constexpr uint64_t pack8(uint64_t codes) {
  static_assert(b >= 1 && b <= 8);
  if constexpr (b < 8) {
    codes = (codes & 0x00ff00ff00ff00ff) | ((codes & 0xff00ff00ff00ff00) >> (8 - b));
    codes = (codes & 0x0000ffff0000ffff) | ((codes & 0xffff0000ffff0000) >> (16 - 2 * b));
    codes = (codes & 0x00000000ffffffff) | ((codes & 0xffffffff00000000) >> (32 - 4 * b));
  }
  return codes;
}

/// The inverse: the low 8 * b bits spread to eight bytes. Higher bits are ignored.
template <unsigned b>
constexpr uint64_t unpack8(uint64_t packed) {
  static_assert(b >= 1 && b <= 8);
  if constexpr (b < 8) {
    constexpr uint64_t kFour = (uint64_t{1} << (4 * b)) - 1;
    constexpr uint64_t kTwo = ((uint64_t{1} << (2 * b)) - 1) * 0x0000000100000001;
    constexpr uint64_t kOne = ((uint64_t{1} << b) - 1) * 0x0001000100010001;
    packed = (packed & kFour) | ((packed >> (4 * b) & kFour) << 32);
    packed = (packed & kTwo) | ((packed >> (2 * b) & kTwo) << 16);
    packed = (packed & kOne) | ((packed >> b & kOne) << 8);
  }
  return packed;
}

}  // namespace strait::kernels
