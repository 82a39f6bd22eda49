#include "strait/kernels/signs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/signs.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kRows = 8;  // that are added up at once
constexpr size_t kBlock = kRows * kSumLanes;

using Row = std::array<float, kSumLanes>;

inline Row operator+(const Row& a, const Row& b) {
  Row sum;
  for (size_t i = 0; i < kSumLanes; ++i) sum[i] = a[i] + b[i];
  return sum;
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
    bool is_first = true;
    for (size_t level = 0; level < sums_.size(); ++level) {
      if ((blocks_ >> level & 1) == 0) continue;
      sum = is_first ? sums_[level] : sums_[level] + sum;
      is_first = false;
    }
    for (size_t step = 1; step < kSumLanes; step *= 2) {
      for (size_t i = 0; i + step < kSumLanes; i += 2 * step) sum[i] = sum[i] + sum[i + step];
    }
    return sum[0];
  }

 private:
  std::array<Row, 64> sums_;
  uint64_t blocks_ = 0;
};

/// The sum of `term` of a block.
template <class Term>
HWY_INLINE Row block_sum(const float* x, const Term& term) {
  alignas(64) std::array<float, kBlock> terms;
  for (size_t i = 0; i < kBlock; ++i) terms[i] = term(x[i]);
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

/// Calls work(block) for each block; the last is filled up with zeros.
template <class Work>
HWY_INLINE void in_blocks(std::span<const float> x, const Work& work) {
  size_t begin = 0;
  for (; begin + kBlock <= x.size(); begin += kBlock) {
    for (size_t i = 0; i < kBlock; i += 16) prefetch(x.data() + begin + i + kAhead);
    work(x.data() + begin);
  }
  if (begin == x.size()) return;
  std::array<float, kBlock> last{};
  std::ranges::copy(x.subspan(begin), last.begin());
  work(last.data());
}

}  // namespace

float sum_of_magnitudes(std::span<const float> x) {
  RowTree sums;
  in_blocks(x, [&](const float* block) { sums.add(block_sum(block, [](float v) { return std::fabs(v); })); });
  return sums.total();
}

Sides sums_by_sign(std::span<const float> x) {
  RowTree positive;
  RowTree negative;
  size_t negatives = 0;
  in_blocks(x, [&](const float* block) {
    positive.add(block_sum(block, [](float v) { return v < 0 ? 0.0F : v; }));
    negative.add(block_sum(block, [](float v) { return v < 0 ? v : 0.0F; }));
    uint32_t below = 0;
    for (size_t i = 0; i < kBlock; ++i) below += block[i] < 0 ? 1 : 0;
    negatives += below;
  });
  return {positive.total(), negative.total(), negatives};
}

void pack_signs(std::span<const float> x, std::span<std::byte> out) {
  constexpr uint64_t kGather = 0x0102040810204080;  // moves the low bits of eight bytes into the highest byte
  std::span<std::byte> left = out;
  in_blocks(x, [&](const float* block) {
    alignas(64) std::array<uint8_t, kBlock> signs;
    for (size_t i = 0; i < kBlock; ++i) signs[i] = block[i] < 0 ? 1 : 0;
    std::array<uint8_t, kBlock / 8> packed;
    for (size_t i = 0; i < packed.size(); ++i) {
      uint64_t eight = 0;
      std::memcpy(&eight, signs.data() + 8 * i, sizeof eight);
      packed[i] = static_cast<uint8_t>(eight * kGather >> 56);
    }
    const size_t bytes = std::min(left.size(), packed.size());
    std::memcpy(left.data(), packed.data(), bytes);
    left = left.subspan(bytes);
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

HWY_EXPORT(sum_of_magnitudes);
HWY_EXPORT(sums_by_sign);
HWY_EXPORT(pack_signs);
HWY_EXPORT(unpack_signs);

float sum_of_magnitudes(std::span<const float> x) { return STRAIT_KERNEL(sum_of_magnitudes)(x); }
Sides sums_by_sign(std::span<const float> x) { return STRAIT_KERNEL(sums_by_sign)(x); }
void pack_signs(std::span<const float> x, std::span<std::byte> out) { STRAIT_KERNEL(pack_signs)(x, out); }
void unpack_signs(std::span<const std::byte> in, float if_clear, float if_set, std::span<float> out) {
  STRAIT_KERNEL(unpack_signs)(in, if_clear, if_set, out);
}

}  // namespace strait::kernels
#endif
