#include "strait/kernels/channels.h"

#include <algorithm>
#include <array>
#include <bit>

#include "strait/kernels/prefetch.h"
#include "strait/kernels/sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/channels.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kRows = 8;  // that are added up at once

/// A tree of sums of rows of any width, neighbour to neighbour: sums of 2^l that wait for a neighbour stand at
/// level l.
class WideTree {
 public:
  /// Of up to `rows` rows of `width` elements. `space` is the tree's as long as it lives.
  WideTree(size_t width, size_t rows, std::vector<float>& space) : width_(width) {
    const size_t needed = (static_cast<size_t>(std::bit_width(rows)) + 2) * width;
    if (space.size() < needed) space.resize(needed);
    std::fill_n(space.data(), width, 0.0F);
    zeros_ = space.data();
    next_ = space.data() + width;
  }

  /// A row of zeros.
  const float* zeros() const { return zeros_; }

  /// Where the next row is to be written before add().
  float* next() { return next_; }

  void add() {
    size_t level = 0;
    for (; (rows_ >> level & 1) != 0; ++level) add_to(next_, sum(level));
    std::copy_n(next_, width_, sum(level));
    ++rows_;
  }

  /// The sum of all. What has no neighbour is added to the next sum that waits.
  void total(float* out) {
    std::fill_n(out, width_, 0.0F);
    for (size_t level = 0; rows_ >> level != 0; ++level) {
      if ((rows_ >> level & 1) != 0) add_to(out, sum(level));
    }
  }

 private:
  float* sum(size_t level) { return next_ + (level + 1) * width_; }
  void add_to(float* to, const float* from) const {
    for (size_t i = 0; i < width_; ++i) to[i] += from[i];
  }

  size_t width_;
  const float* zeros_ = nullptr;
  float* next_ = nullptr;
  uint64_t rows_ = 0;
};

/// The sums of the squares of kRows rows times `factor`, neighbour to neighbour.
void add_squares(const std::array<const float*, kRows>& rows, size_t width, float factor, float* out) {
  const auto [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
  const auto square = [factor](float value) {
    const float scaled = value * factor;
    return scaled * scaled;
  };
  for (size_t i = 0; i < width; ++i) {
    const float first = (square(r0[i]) + square(r1[i])) + (square(r2[i]) + square(r3[i]));
    const float second = (square(r4[i]) + square(r5[i])) + (square(r6[i]) + square(r7[i]));
    out[i] = first + second;
  }
}

}  // namespace

/// Of channels whose elements lie apart, in rows of all channels.
void sum_squares_of_rows(const float* x, size_t rows, size_t width, float factor, std::vector<float>& space,
                         float* sums) {
  WideTree tree(width, (rows + kRows - 1) / kRows, space);
  for (size_t begin = 0; begin < rows; begin += kRows) {
    std::array<const float*, kRows> block;
    for (size_t i = 0; i < kRows; ++i) block[i] = begin + i < rows ? x + (begin + i) * width : tree.zeros();
    add_squares(block, width, factor, tree.next());
    tree.add();
  }
  tree.total(sums);
}

/// Of channels whose elements lie together in each of `outer` parts.
void sum_squares_of_parts(const float* x, const ChannelView& view, float factor, std::vector<float>& space,
                          float* sums) {
  WideTree tree(view.channels, view.outer, space);
  for (size_t part = 0; part < view.outer; ++part) {
    for (size_t channel = 0; channel < view.channels; ++channel) {
      tree.next()[channel] =
          sum_of_squared_deviations({x + (part * view.channels + channel) * view.inner, view.inner}, 0, factor);
    }
    tree.add();
  }
  tree.total(sums);
}

void largest_of_channels(std::span<const float> x, const ChannelView& view, std::span<uint32_t> largest) {
  constexpr uint32_t kMagnitude = 0x7fffffff;
  std::ranges::fill(largest, 0);
  for (size_t part = 0; part < view.outer; ++part) {
    const float* const from = x.data() + part * view.channels * view.inner;
    for (size_t i = 0; i < view.channels * view.inner; i += 16) prefetch(from + i + kAhead);
    if (view.inner == 1) {
      for (size_t i = 0; i < view.channels; ++i) {
        largest[i] = std::max(largest[i], std::bit_cast<uint32_t>(from[i]) & kMagnitude);
      }
      continue;
    }
    for (size_t channel = 0; channel < view.channels; ++channel) {
      const float* const elements = from + channel * view.inner;
      uint32_t most = largest[channel];
      for (size_t i = 0; i < view.inner; ++i)
        most = std::max(most, std::bit_cast<uint32_t>(elements[i]) & kMagnitude);
      largest[channel] = most;
    }
  }
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(sum_squares_of_rows);
HWY_EXPORT(sum_squares_of_parts);
HWY_EXPORT(largest_of_channels);

void sums_of_channel_squares(std::span<const float> x, const ChannelView& view, float factor,
                             std::vector<float>& space, std::span<float> sums) {
  if (view.inner > 1) return STRAIT_KERNEL(sum_squares_of_parts)(x.data(), view, factor, space, sums.data());
  STRAIT_KERNEL(sum_squares_of_rows)(x.data(), view.outer, view.channels, factor, space, sums.data());
}

void largest_of_channels(std::span<const float> x, const ChannelView& view, std::span<uint32_t> largest) {
  STRAIT_KERNEL(largest_of_channels)(x, view, largest);
}

namespace {

/// Sets the bits that are set in `bits`, from position `begin` on.
void or_bits(std::span<const uint64_t> bits, size_t begin, std::span<uint64_t> mask) {
  const size_t shift = begin % 64;
  for (size_t i = 0; i < bits.size(); ++i) {
    const size_t word = begin / 64 + i;
    mask[word] |= bits[i] << shift;
    const uint64_t rest = bits[i] >> 1 >> (63 - shift);
    if (rest != 0) mask[word + 1] |= rest;
  }
}

/// Sets all bits from `begin` to `end`, which is excluded.
void set_bits(size_t begin, size_t end, std::span<uint64_t> mask) {
  while (begin < end) {
    const size_t last = std::min(end, (begin / 64 + 1) * 64);
    mask[begin / 64] |= ~uint64_t{0} >> (64 - (last - begin)) << begin % 64;
    begin = last;
  }
}

}  // namespace

void mark_channels(std::span<const uint64_t> channels, const ChannelView& view, std::span<uint64_t> elements) {
  std::ranges::fill(elements, uint64_t{0});
  if (view.inner == 1) {
    for (size_t part = 0; part < view.outer; ++part) or_bits(channels, part * view.channels, elements);
    return;
  }
  for (size_t part = 0; part < view.outer; ++part) {
    for (size_t word = 0; word < channels.size(); ++word) {
      for (uint64_t bits = channels[word]; bits != 0; bits &= bits - 1) {
        const size_t channel = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        const size_t begin = (part * view.channels + channel) * view.inner;
        set_bits(begin, begin + view.inner, elements);
      }
    }
  }
}

}  // namespace strait::kernels
#endif
