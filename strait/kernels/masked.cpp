#include "strait/kernels/masked.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/masked.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"
#include "strait/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

/// The next floats of `values` in the masked lanes, 0 in the others. May look at kLanes floats.
HWY_INLINE hn::Vec<Floats> expand(const float* values, uint64_t bits) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return hn::Vec<Floats>{_mm512_maskz_expandloadu_ps(static_cast<__mmask16>(bits), values)};
#elif HWY_ARCH_X86 && HWY_TARGET == HWY_AVX2
  const auto moved = move_lanes(hn::LoadU(Floats(), values), kLaneTables.rank_of[bits & 255]);
  return hn::IfThenElseZero(mask_of(bits), moved);
#else
  HWY_ALIGN float lanes[kLanes] = {};
  for (size_t i = 0; i < kLanes; ++i) {
    if ((bits >> i & 1) != 0) lanes[i] = *values++;
  }
  return hn::Load(Floats(), lanes);
#endif
}

/// Calls block(i, bits, values) for kLanes positions from i on, as long as there are as many, and as many
/// values; one(i, value) for each masked position after them.
template <class Block, class One>
HWY_INLINE void visit(std::span<const uint64_t> mask, size_t n, std::span<const float> values, Block block,
                      One one) {
  const float* next = values.data();
  const float* const end = next + values.size();
  size_t word = 0;
  for (; word < n / 64 && end - next >= 64; ++word) {
    for (size_t i = 0; i < 64; i += kLanes) {
      const uint64_t bits = mask[word] >> i & ((uint64_t{1} << kLanes) - 1);
      block(word * 64 + i, bits, next);
      next += hwy::PopCount(bits);
    }
  }
  for (; word < mask.size(); ++word) {
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      one(word * 64 + static_cast<size_t>(std::countr_zero(bits)), *next++);
    }
  }
}

}  // namespace

size_t count(std::span<const uint64_t> mask) {
  size_t sum = 0;
  for (const uint64_t word : mask) sum += static_cast<size_t>(std::popcount(word));
  return sum;
}

void gather(const float* x, std::span<const uint64_t> mask, std::span<float> values) {
  float* next = values.data();
  float* const end = next + values.size();
  size_t word = 0;
  for (; word < mask.size() && end - next >= 64; ++word) {
    // 64 values to come: the word is not the last one.
    if (mask[word] == 0) continue;
    for (size_t i = 0; i < 64; i += kLanes) {
      next += compress_store(hn::LoadU(Floats(), x + word * 64 + i), mask[word] >> i, next);
    }
  }
  for (; word < mask.size(); ++word) {
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      *next++ = x[word * 64 + static_cast<size_t>(std::countr_zero(bits))];
    }
  }
}

void scatter(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  const float* next = values.data();
  const float* const end = next + values.size();
  size_t word = 0;
  for (; word < out.size() / 64 && end - next >= 64; ++word) {
    for (size_t i = 0; i < 64; i += 16) prefetch(out.data() + word * 64 + i + kAhead);
    for (size_t i = 0; i < 64; i += kLanes) {
      const uint64_t bits = mask[word] >> i & ((uint64_t{1} << kLanes) - 1);
      hn::StoreU(expand(next, bits), Floats(), out.data() + word * 64 + i);
      next += hwy::PopCount(bits);
    }
  }
  std::fill(out.begin() + static_cast<ptrdiff_t>(word * 64), out.end(), 0.0F);
  for (; word < mask.size(); ++word) {
    for (uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      out[word * 64 + static_cast<size_t>(std::countr_zero(bits))] = *next++;
    }
  }
}

void put(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  visit(
      mask, out.size(), values,
      [&](size_t i, uint64_t bits, const float* from)
          HWY_ATTR { hn::BlendedStore(expand(from, bits), mask_of(bits), Floats(), out.data() + i); },
      [&](size_t i, float value) { out[i] = value; });
}

void add(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  visit(
      mask, out.size(), values,
      [&](size_t i, uint64_t bits, const float* from) HWY_ATTR {
        const auto sum = hn::Add(hn::LoadU(Floats(), out.data() + i), expand(from, bits));
        hn::BlendedStore(sum, mask_of(bits), Floats(), out.data() + i);
      },
      [&](size_t i, float value) { out[i] += value; });
}

bool move(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out, float* before) {
  auto special = hn::Zero(Integers());
  bool finite = true;
  visit(
      mask, out.size(), values,
      [&](size_t i, uint64_t bits, const float* from) HWY_ATTR {
        const auto old = hn::LoadU(Floats(), out.data() + i);
        const auto sum = hn::Add(old, expand(from, bits));
        const auto exponent = hn::Set(Integers(), 0x7f800000);
        const auto above =
            hn::VecFromMask(Integers(), hn::Eq(hn::And(hn::BitCast(Integers(), sum), exponent), exponent));
        special = hn::Or(special, above);
        before += compress_store(old, bits, before);
        hn::BlendedStore(sum, mask_of(bits), Floats(), out.data() + i);
      },
      [&](size_t i, float value) {
        *before++ = out[i];
        out[i] += value;
        finite &= std::isfinite(out[i]);
      });
  return finite && hn::AllTrue(Integers(), hn::Eq(special, hn::Zero(Integers())));
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(count);
HWY_EXPORT(gather);
HWY_EXPORT(scatter);
HWY_EXPORT(put);
HWY_EXPORT(add);
HWY_EXPORT(move);

size_t count_masked(std::span<const uint64_t> mask) { return STRAIT_KERNEL(count)(mask); }

void gather_masked(std::span<const float> x, std::span<const uint64_t> mask, std::span<float> values) {
  STRAIT_KERNEL(gather)(x.data(), mask, values);
}

void scatter_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  STRAIT_KERNEL(scatter)(values, mask, out);
}

void put_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  STRAIT_KERNEL(put)(values, mask, out);
}

void add_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out) {
  STRAIT_KERNEL(add)(values, mask, out);
}

bool move_masked(std::span<const float> values, std::span<const uint64_t> mask, std::span<float> out,
                 std::span<float> before) {
  return STRAIT_KERNEL(move)(values, mask, out, before.data());
}

}  // namespace strait::kernels
#endif
