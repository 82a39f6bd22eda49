// What kernels over masks share, once for each target.

#if defined(STRAIT_KERNELS_MASKED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef STRAIT_KERNELS_MASKED_INL
#undef STRAIT_KERNELS_MASKED_INL
#else
#define STRAIT_KERNELS_MASKED_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "strait/kernels/lane_tables.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::ScalableTag<int32_t>;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kMaskBytes = (kLanes + 7) / 8;

/// The lanes of a mask as the low kLanes bits of a word.
template <class Mask>
HWY_INLINE uint64_t bits_of(Mask mask) {
  uint8_t bytes[8];
  hn::StoreMaskBits(Floats(), mask, bytes);
  if constexpr (kMaskBytes == 2) {
    uint16_t bits;
    std::memcpy(&bits, bytes, sizeof(bits));
    return bits;
  } else {
    return bytes[0] & ((1U << kLanes) - 1);
  }
}

/// The way back; bits from kLanes on are ignored.
HWY_INLINE auto mask_of(uint64_t bits) {
  uint8_t bytes[8];
  std::memcpy(bytes, &bits, sizeof(bits));
  return hn::LoadMaskBits(Floats(), bytes);
}

/// The 64 answers of `test(i)`, a mask for lanes i to i + kLanes - 1 for each i, as the bits of a word.
template <class Test>
HWY_INLINE uint64_t word_of(Test test) {
  uint64_t word = 0;
  for (size_t i = 0; i < 64; i += kLanes) word |= bits_of(test(i)) << i;
  return word;
}

#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2
/// Lane i of the result is the lane of `values` that the i-th byte names.
HWY_INLINE hn::Vec<Floats> move_lanes(hn::Vec<Floats> values, const LaneTables::Lanes& lanes) {
  const auto from = hn::PromoteTo(Integers(), hn::LoadU(hn::Rebind<uint8_t, Floats>(), lanes.data()));
  return hn::TableLookupLanes(values, hn::IndicesFromVec(Floats(), from));
}
#endif

/// The lanes that the low bits mark, one behind the other; then anything.
HWY_INLINE hn::Vec<Floats> compress(hn::Vec<Floats> values, uint64_t bits) {
#if HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2
  return move_lanes(values, kLaneTables.masked[bits & 255]);
#else
  return hn::Compress(values, mask_of(bits));
#endif
}

/// Writes the lanes that the low bits mark, one behind the other; up to kLanes floats may be overwritten.
/// Returns how many there are.
HWY_INLINE size_t compress_store(hn::Vec<Floats> values, uint64_t bits, float* out) {
  hn::StoreU(compress(values, bits), Floats(), out);
  return static_cast<size_t>(hwy::PopCount(bits & ((uint64_t{1} << kLanes) - 1)));
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
