#include "strait/kernels/hadamard.h"

#include <algorithm>
#include <array>
#include <bit>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/hadamard.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Integers = hn::RebindToSigned<Floats>;
using Vector = hn::Vec<Floats>;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kVectors = kRotated / kLanes;

/// 1 / 8 with the sign of each element.
using Factors = std::array<float, kRotated>;

Factors factors_of(uint64_t signs) {
  Factors factors;
  for (size_t i = 0; i < kRotated; ++i) factors[i] = (signs >> i & 1) != 0 ? -0.125F : 0.125F;
  return factors;
}

#if HWY_TARGET == HWY_SCALAR

/// A vector has one lane.
HWY_INLINE void within_vectors(std::array<Vector, kVectors>& /*block*/) {}

#else

/// Changes the sign of the second of each pair of runs of h lanes.
template <size_t h>
HWY_INLINE Vector negate_second(Vector v) {
  alignas(64) std::array<uint32_t, kLanes> mask;
  for (size_t i = 0; i < kLanes; ++i) mask[i] = (i & h) != 0 ? 0x80000000 : 0;
  const hn::RebindToUnsigned<Floats> unsigned_lanes;
  return hn::BitCast(Floats(), hn::Xor(hn::BitCast(unsigned_lanes, v), hn::Load(unsigned_lanes, mask.data())));
}

/// Exchanges neighbouring runs of h lanes.
template <size_t h>
HWY_INLINE Vector swap_runs(Vector v) {
  if constexpr (h == 1) {
    return hn::Shuffle2301(v);
  } else if constexpr (h == 2) {
    return hn::Shuffle1032(v);
  } else if constexpr (2 * h == kLanes) {
    return hn::ConcatLowerUpper(Floats(), v, v);
  } else {
    static_assert(h == 4);
    return hn::SwapAdjacentBlocks(v);
  }
}

/// The step of runs of h lanes: what swap gives is added to v, or v is taken from it.
template <size_t h>
HWY_INLINE void within(std::array<Vector, kVectors>& block) {
  if constexpr (h < kLanes) {
    for (Vector& v : block) v = hn::Add(swap_runs<h>(v), negate_second<h>(v));
    within<2 * h>(block);
  }
}

HWY_INLINE void within_vectors(std::array<Vector, kVectors>& block) { within<1>(block); }

#endif

HWY_INLINE void transform(std::array<Vector, kVectors>& block) {
  within_vectors(block);
  for (size_t h = 1; h < kVectors; h *= 2) {
    for (size_t run = 0; run < kVectors; run += 2 * h) {
      for (size_t i = run; i < run + h; ++i) {
        const Vector a = block[i];
        const Vector b = block[i + h];
        block[i] = hn::Add(a, b);
        block[i + h] = hn::Sub(a, b);
      }
    }
  }
}

HWY_INLINE uint32_t largest_bits(std::span<const float> x) {
  uint32_t largest = 0;
  for (const float value : x) largest = std::max(largest, std::bit_cast<uint32_t>(value) & 0x7fffffff);
  return largest;
}

/// Calls work(x, out) for each whole block, and copies what is left. Gives the elements of the whole blocks.
template <class Work>
HWY_INLINE size_t in_whole_blocks(std::span<const float> x, std::span<float> out, const Work& work) {
  size_t begin = 0;
  for (; begin + kRotated <= x.size(); begin += kRotated) {
    for (size_t i = 0; i < kRotated; i += 16) prefetch(x.data() + begin + i + kAhead);
    work(x.data() + begin, out.data() + begin);
  }
  if (x.data() != out.data()) std::ranges::copy(x.subspan(begin), out.subspan(begin).begin());
  return begin;
}

}  // namespace

uint32_t rotate(std::span<const float> x, uint64_t signs, std::span<float> out) {
  const Factors factors = factors_of(signs);
  auto largest = hn::Zero(Integers());
  const auto take_in = [&](Vector v) HWY_ATTR {
    largest = hn::Max(largest, hn::BitCast(Integers(), hn::Abs(v)));
    return v;
  };
  const size_t whole = in_whole_blocks(x, out, [&](const float* from, float* to) HWY_ATTR {
    std::array<Vector, kVectors> block;
    for (size_t i = 0; i < kVectors; ++i) {
      block[i] = hn::Mul(take_in(hn::LoadU(Floats(), from + i * kLanes)),
                         hn::LoadU(Floats(), factors.data() + i * kLanes));
    }
    transform(block);
    for (size_t i = 0; i < kVectors; ++i) hn::StoreU(block[i], Floats(), to + i * kLanes);
  });
  return std::max(static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(Integers(), largest))),
                  largest_bits(x.subspan(whole)));
}

bool rotate_back(std::span<const float> x, uint64_t signs, std::span<float> out) {
  constexpr uint32_t kInfinity = 0x7f800000;
  Factors factors = factors_of(signs);
  for (float& factor : factors) factor *= 8;
  in_whole_blocks(x, out, [&](const float* from, float* to) HWY_ATTR {
    std::array<Vector, kVectors> block;
    const Vector eighth = hn::Set(Floats(), 0.125F);
    for (size_t i = 0; i < kVectors; ++i) block[i] = hn::Mul(hn::LoadU(Floats(), from + i * kLanes), eighth);
    transform(block);
    for (size_t i = 0; i < kVectors; ++i) {
      hn::StoreU(hn::Mul(block[i], hn::LoadU(Floats(), factors.data() + i * kLanes)), Floats(),
                 to + i * kLanes);
    }
  });
  return largest_bits(out) < kInfinity;
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(rotate);
HWY_EXPORT(rotate_back);

uint32_t rotate(std::span<const float> x, uint64_t signs, std::span<float> out) {
  return STRAIT_KERNEL(rotate)(x, signs, out);
}
bool rotate_back(std::span<const float> x, uint64_t signs, std::span<float> out) {
  return STRAIT_KERNEL(rotate_back)(x, signs, out);
}

}  // namespace strait::kernels
#endif
