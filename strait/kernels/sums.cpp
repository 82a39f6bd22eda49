#include "strait/kernels/sums.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/sums.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/blocks-inl.h"
#include "strait/kernels/dispatch.h"

// Mostly plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kRows = kSmallBlock / kSumLanes;  // that are added up at once

using Row = std::array<float, kSumLanes>;

/// By intrinsics, because a compiler that unrolls the loop takes the elements one by one.
HWY_INLINE Row operator+(const Row& a, const Row& b) {
  constexpr hn::CappedTag<float, kSumLanes> kTag;
  Row sum;
  for (size_t i = 0; i < kSumLanes; i += hn::MaxLanes(kTag)) {
    hn::StoreU(hn::Add(hn::LoadU(kTag, a.data() + i), hn::LoadU(kTag, b.data() + i)), kTag, sum.data() + i);
  }
  return sum;
}

/// The sum of kCount elements, neighbour to neighbour.
template <size_t kCount>
HWY_INLINE float sum_of_neighbours(const float* x) {
  if constexpr (kCount == 1) {
    return x[0];
  } else {
    std::array<float, kCount / 2> sums;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = x[2 * i] + x[2 * i + 1];
    return sum_of_neighbours<kCount / 2>(sums.data());
  }
}

/// The sums of rows that wait for a neighbour: sums_[l] is of 2^l blocks.
class RowTree {
 public:
  /// Adds the next block.
  HWY_INLINE void add(Row sum) {
    size_t level = 0;
    for (; (blocks_ >> level & 1) != 0; ++level) sum = sums_[level] + sum;
    sums_[level] = sum;
    ++blocks_;
  }

  /// The sum of all. What has no neighbour is added to the next sum that waits.
  float total() const {
    Row sum{};
    uint64_t left = blocks_;
    if (left != 0) sum = sums_[static_cast<size_t>(std::countr_zero(left))];
    for (left &= left - 1; left != 0; left &= left - 1) {
      sum = sums_[static_cast<size_t>(std::countr_zero(left))] + sum;
    }
    return sum_of_neighbours<kSumLanes>(sum.data());
  }

 private:
  std::array<Row, 64> sums_;
  uint64_t blocks_ = 0;
};

/// The sum of `term` of a block.
template <class Term>
HWY_INLINE Row block_sum(const float* x, const Term& term) {
  alignas(64) std::array<float, kSmallBlock> terms;
  for (size_t i = 0; i < kSmallBlock; ++i) terms[i] = term(x[i]);
  for (size_t rows = kRows / 2; rows > 0; rows /= 2) {
    for (size_t row = 0; row < rows; ++row) {
      for (size_t i = 0; i < kSumLanes; ++i) {
        terms[row * kSumLanes + i] = terms[2 * row * kSumLanes + i] + terms[(2 * row + 1) * kSumLanes + i];
      }
    }
  }
  Row sum;
  std::copy_n(terms.begin(), kSumLanes, sum.begin());
  return sum;
}

/// The sum of `term` of all elements; term(0) is 0.
template <class Term>
HWY_INLINE float sum_of(std::span<const float> x, const Term& term) {
  RowTree sums;
  in_small_blocks(x, [&](const float* block, size_t /*count*/) { sums.add(block_sum(block, term)); });
  return sums.total();
}

/// The sum of `term` of all x - mean.
template <class Term>
HWY_INLINE float sum_about(std::span<const float> x, float mean, const Term& term) {
  RowTree sums;
  in_small_blocks(x, [&](const float* block, size_t count) {
    std::array<float, kSmallBlock> deviations{};
    for (size_t i = 0; i < count; ++i) deviations[i] = block[i] - mean;
    sums.add(block_sum(deviations.data(), term));
  });
  return sums.total();
}

HWY_INLINE float log2_of(float p) {
  const auto bits = std::bit_cast<int32_t>(p);
  const int32_t exponent = (bits - kLog2Split) >> 23;
  const float rest = std::bit_cast<float>(bits - exponent * (1 << 23)) - 1;
  const auto [c7, c6, c5, c4, c3, c2, c1, c0] = kLog2Terms;
  const float quotient =
      ((((((c7 * rest + c6) * rest + c5) * rest + c4) * rest + c3) * rest + c2) * rest + c1) * rest + c0;
  return static_cast<float>(exponent) + rest * quotient;
}

}  // namespace

float sum(std::span<const float> x) {
  return sum_of(x, [](float v) { return v; });
}

float sum_of_magnitudes(std::span<const float> x) {
  return sum_of(x, [](float v) { return std::fabs(v); });
}

float sum_of_squared_deviations(std::span<const float> x, float mean, float factor) {
  return sum_about(x, mean, [=](float v) {
    const float scaled = v * factor;
    return scaled * scaled;
  });
}

float sum_of_deviations(std::span<const float> x, float mean) {
  return sum_about(x, mean, [](float v) { return std::fabs(v); });
}

float entropy(std::span<const float> x) {
  const float total = sum_of_magnitudes(x);
  const float scale = 1 / std::max(total, std::numeric_limits<float>::min());
  return sum_of(x, [=](float v) {
    constexpr int32_t kLeastNormal = 1 << 23;
    const float p = std::fabs(v) * scale;
    const int32_t mask = std::bit_cast<int32_t>(p) < kLeastNormal ? 0 : -1;  // not a branch: zeros are frequent
    return std::bit_cast<float>(std::bit_cast<int32_t>(p * -log2_of(p)) & mask);
  });
}

Sides sums_by_sign(std::span<const float> x) {
  RowTree positive;
  RowTree negative;
  size_t negatives = 0;
  in_small_blocks(x, [&](const float* block, size_t /*count*/) {
    positive.add(block_sum(block, [](float v) { return v < 0 ? 0.0F : v; }));
    negative.add(block_sum(block, [](float v) { return v < 0 ? v : 0.0F; }));
    uint32_t below = 0;
    for (size_t i = 0; i < kSmallBlock; ++i) below += block[i] < 0 ? 1 : 0;
    negatives += below;
  });
  return {positive.total(), negative.total(), negatives};
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(sum);
HWY_EXPORT(sum_of_magnitudes);
HWY_EXPORT(sum_of_squared_deviations);
HWY_EXPORT(sum_of_deviations);
HWY_EXPORT(entropy);
HWY_EXPORT(sums_by_sign);

float sum(std::span<const float> x) { return STRAIT_KERNEL(sum)(x); }
float sum_of_magnitudes(std::span<const float> x) { return STRAIT_KERNEL(sum_of_magnitudes)(x); }
float sum_of_squared_deviations(std::span<const float> x, float mean, float factor) {
  return STRAIT_KERNEL(sum_of_squared_deviations)(x, mean, factor);
}
float sum_of_deviations(std::span<const float> x, float mean) {
  return STRAIT_KERNEL(sum_of_deviations)(x, mean);
}
float entropy(std::span<const float> x) { return STRAIT_KERNEL(entropy)(x); }
Sides sums_by_sign(std::span<const float> x) { return STRAIT_KERNEL(sums_by_sign)(x); }

}  // namespace strait::kernels
#endif
