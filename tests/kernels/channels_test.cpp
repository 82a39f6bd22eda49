#include "strait/kernels/channels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "strait/kernels/masked.h"
#include "strait/kernels/sums.h"

namespace strait::kernels {
namespace {

const std::vector<ChannelView> kViews = {{1, 1, 1},    {1, 70, 1}, {7, 5, 1},   {8, 64, 1}, {9, 3, 1},
                                         {100, 17, 1}, {1, 4, 30}, {5, 3, 200}, {6, 65, 4}, {1000, 130, 1}};

/// The sums of squares of x times the factor: over the inner elements in the order of kernels/sums.h, then
/// neighbour to neighbour.
std::vector<float> sums_of(const std::vector<float>& x, const ChannelView& view, float factor) {
  std::vector<std::vector<float>> rows(view.outer, std::vector<float>(view.channels));
  for (size_t part = 0; part < view.outer; ++part) {
    for (size_t channel = 0; channel < view.channels; ++channel) {
      const float* from = x.data() + (part * view.channels + channel) * view.inner;
      rows[part][channel] = view.inner == 1 ? (*from * factor) * (*from * factor)
                                            : sum_of_squared_deviations({from, view.inner}, 0, factor);
    }
  }
  while (rows.size() > 1) {
    std::vector<std::vector<float>> next;
    for (size_t row = 0; row < rows.size(); row += 2) {
      next.push_back(rows[row]);
      for (size_t i = 0; row + 1 < rows.size() && i < view.channels; ++i) next.back()[i] += rows[row + 1][i];
    }
    rows = next;
  }
  return rows[0];
}

TEST(Channels, SumsOfSquaresHaveTheDocumentedOrder) {
  std::vector<float> space;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const ChannelView& view : kViews) {
    std::vector<float> x(view.elements());
    for (float& value : x) value = normal(random);
    for (const float factor : {1.0F, 0x1p-40F, 3.0F}) {
      std::vector<float> sums(view.channels, -1);
      sums_of_channel_squares(x, view, factor, space, sums);
      EXPECT_EQ(sums, sums_of(x, view, factor)) << view.outer << " " << view.channels << " " << view.inner;
    }
  }
}

TEST(Channels, LargestMagnitudesAreBits) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const ChannelView& view : kViews) {
    std::vector<float> x(view.elements());
    for (float& value : x) value = normal(random);
    std::vector<uint32_t> expected(view.channels);
    for (size_t i = 0; i < x.size(); ++i) {
      uint32_t& most = expected[i / view.inner % view.channels];
      most = std::max(most, std::bit_cast<uint32_t>(std::abs(x[i])));
    }
    std::vector<uint32_t> largest(view.channels, 0xffffffff);
    largest_of_channels(x, view, largest);
    EXPECT_EQ(largest, expected);
    x.back() = -std::nanf("");
    largest_of_channels(x, view, largest);
    EXPECT_GT(largest.back(), 0x7f800000U);
  }
}

TEST(Channels, AllElementsOfAMarkedChannelAreMarked) {
  std::mt19937 random(2);
  for (const ChannelView& view : kViews) {
    std::vector<uint64_t> channels(mask_words(view.channels));
    for (size_t channel = 0; channel < view.channels; ++channel) {
      channels[channel / 64] |= static_cast<uint64_t>(random() % 2) << channel % 64;
    }
    std::vector<uint64_t> expected(mask_words(view.elements()));
    for (size_t i = 0; i < view.elements(); ++i) {
      const size_t channel = i / view.inner % view.channels;
      expected[i / 64] |= (channels[channel / 64] >> channel % 64 & 1) << i % 64;
    }
    std::vector<uint64_t> mask(mask_words(view.elements()), ~uint64_t{0});
    mark_channels(channels, view, mask);
    EXPECT_EQ(mask, expected) << view.outer << " " << view.channels << " " << view.inner;
  }
}

}  // namespace
}  // namespace strait::kernels
