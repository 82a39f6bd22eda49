// Spans in small blocks, once for each target.

#if defined(STRAIT_KERNELS_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef STRAIT_KERNELS_BLOCKS_INL
#undef STRAIT_KERNELS_BLOCKS_INL
#else
#define STRAIT_KERNELS_BLOCKS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "strait/kernels/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

constexpr size_t kSmallBlock = 64;  // elements

/// Calls work(block, count) for each block of kSmallBlock elements; the last, of `count`, is filled up with
/// zeros.
template <class Work>
HWY_INLINE void in_small_blocks(std::span<const float> x, const Work& work) {
  size_t begin = 0;
  for (; begin + kSmallBlock <= x.size(); begin += kSmallBlock) {
    for (size_t i = 0; i < kSmallBlock; i += 16) prefetch(x.data() + begin + i + kAhead);
    work(x.data() + begin, kSmallBlock);
  }
  if (begin == x.size()) return;
  std::array<float, kSmallBlock> last{};
  std::ranges::copy(x.subspan(begin), last.begin());
  work(last.data(), x.size() - begin);
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
