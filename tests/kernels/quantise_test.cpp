#include "strait/kernels/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace strait::kernels {
namespace {

std::vector<float> normal(size_t size, float scale, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(0.3F, scale);
  std::vector<float> x(size);
  for (auto& value : x) value = distribution(random);
  return x;
}

/// The documented formula, one operation at a time, rounded to float after each.
float scaled(float x, Range range, unsigned bits) {
  const volatile float difference = x - range.lo;
  const volatile float extent = range.hi - range.lo;
  if (extent == 0) return 0;
  const volatile float share = difference / extent;
  const volatile float t = share * static_cast<float>((1 << bits) - 1);
  return t;
}

/// Code `i` read bit by bit.
unsigned code_at(std::span<const std::byte> packed, size_t i, unsigned bits) {
  unsigned code = 0;
  for (unsigned bit = 0; bit < bits; ++bit) {
    const size_t at = i * bits + bit;
    code |= (std::to_integer<unsigned>(packed[at / 8]) >> (at % 8) & 1) << bit;
  }
  return code;
}

TEST(Quantise, EveryWidthAndSizeFollowsTheFormula) {
  for (unsigned bits = 1; bits <= 8; ++bits) {
    for (const size_t size : {1U, 2U, 7U, 8U, 9U, 63U, 511U, 512U, 513U, 1537U}) {
      const auto x = normal(size, 2.0F, bits);
      const Range range = range_of(x);
      std::vector<std::byte> packed(packed_size(size, bits), std::byte{0xff});
      quantise(x, range, bits, packed);
      std::vector<float> back(size);
      dequantise(packed, range, bits, back);
      for (size_t i = 0; i < size; ++i) {
        const unsigned code = code_at(packed, i, bits);
        ASSERT_EQ(static_cast<float>(code), std::nearbyint(scaled(x[i], range, bits)));
        const volatile float share = static_cast<float>(code) / static_cast<float>((1 << bits) - 1);
        const volatile float extent = range.hi - range.lo;
        const volatile float step = share * extent;
        const volatile float expected = range.lo + step;
        ASSERT_EQ(back[i], expected);
      }
      for (size_t bit = size * bits; bit < packed.size() * 8; ++bit) ASSERT_EQ(code_at(packed, bit, 1), 0U);
    }
  }
}

TEST(Quantise, TiesGoToTheEvenCode) {
  const std::vector<float> x = {0.0F, 0.5F, 1.5F, 2.5F, 3.0F};
  std::vector<std::byte> packed(packed_size(x.size(), 2));
  quantise(x, {0.0F, 3.0F}, 2, packed);
  const std::vector<unsigned> expected = {0, 0, 2, 2, 3};
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(code_at(packed, i, 2), expected[i]) << i;
}

TEST(Quantise, ValuesBesideTheMiddleOfTwoCodesFollowTheFormula) {
  // Extents that no power of two divides, the smallest and the largest, where an inverse is not exact or not
  // there; beside each middle the floats around it.
  for (const float extent : {0.7F, 3.0F, 1e-38F, 1e-44F, 3e38F}) {
    for (unsigned bits = 1; bits <= 8; ++bits) {
      const auto levels = static_cast<float>((1 << bits) - 1);
      std::vector<float> x = {0.0F, extent};
      for (float level = 0.5F; level < levels; ++level) {
        const float middle = level / levels * extent;
        x.insert(x.end(), {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, extent)});
      }
      std::vector<std::byte> packed(packed_size(x.size(), bits));
      quantise(x, {0.0F, extent}, bits, packed);
      for (size_t i = 0; i < x.size(); ++i) {
        const float wanted = std::nearbyint(scaled(x[i], {0.0F, extent}, bits));
        ASSERT_EQ(static_cast<float>(code_at(packed, i, bits)), wanted) << x[i] << " of " << extent;
      }
    }
  }
}

TEST(Quantise, RangeDoesNotDependOnOrderOrSignsOfZero) {
  const auto is = [](Range range, float lo, float hi) {
    return range.lo == lo && range.hi == hi && !std::signbit(range.lo == 0 ? range.lo : 0.0F) &&
           !std::signbit(range.hi == 0 ? range.hi : 0.0F);
  };
  EXPECT_TRUE(is(range_of(std::vector{-0.0F, 0.0F}), 0, 0));
  EXPECT_TRUE(is(range_of(std::vector{0.0F, -0.0F}), 0, 0));
  EXPECT_TRUE(is(range_of(std::vector{-0.0F}), 0, 0));
  EXPECT_TRUE(is(range_of(std::vector{-0.0F, -1.0F}), -1, 0));
  EXPECT_TRUE(is(range_of(std::vector{3.0F, -0.0F}), 0, 3));
  EXPECT_TRUE(is(range_of(std::vector{-2.0F, -1.0F, -3.0F}), -3, -1));
}

TEST(Quantise, RangeIsNotUsableWhenAnElementIsNotFinite) {
  for (const float bad : {INFINITY, -INFINITY, std::nanf(""), -std::nanf("")}) {
    for (const size_t position : {0U, 13U, 99U}) {
      auto x = normal(100, 1, 3);
      x[position] = bad;
      EXPECT_FALSE(is_usable(range_of(x))) << bad << " at " << position;
    }
  }
  const float most = std::numeric_limits<float>::max();
  EXPECT_FALSE(is_usable({-most, most}));
  EXPECT_TRUE(is_usable({-most / 2, most / 2}));
  const float step = 0x1p104F;  // between the greatest numbers
  EXPECT_TRUE(is_usable({step, most}));
  EXPECT_FALSE(is_usable({1.5F * step, most}));  // rounded, hi - lo is half a step more
}

TEST(Quantise, FindsTheRangeOfTheNextGroupWhateverItsSize) {
  const Dither dither{1, 2, 3};
  for (const size_t size : {1U, 600U, 2048U, 5000U}) {
    const auto x = normal(size, 1, 4);
    std::vector<std::byte> alone(packed_size(size, 4));
    const Range none = quantise(x, range_of(x), 4, alone);
    EXPECT_TRUE(none.lo == 0 && none.hi == 0);
    for (const size_t next_size : {1U, 7U, 511U, 2049U, 5000U, 9000U}) {
      auto next = normal(next_size, 1, 5);
      for (const size_t extreme : {size_t{0}, next_size / 2, next_size - 1}) {
        next[extreme] = extreme % 2 == 0 ? 100.0F : -100.0F;
        const Range expected = range_of(next);
        std::vector<std::byte> packed(alone.size());
        const Range found = quantise(x, range_of(x), 4, packed, next);
        EXPECT_EQ(packed, alone);
        const Range also = quantise_stochastic(x, range_of(x), 4, dither, packed, next);
        EXPECT_TRUE(found.lo == expected.lo && found.hi == expected.hi) << size << " and " << next_size;
        EXPECT_TRUE(also.lo == expected.lo && also.hi == expected.hi) << size << " and " << next_size;
      }
    }
  }
}

TEST(Quantise, ExtremeRangesKeepTheirEnds) {
  const float most = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  const std::vector<Range> ranges = {{-most / 2, most / 2},
                                     {0, most},
                                     {0, least},
                                     {-least, least},
                                     {-3 * least, 8 * least},
                                     {1.0F, std::nextafter(1.0F, 2.0F)}};
  for (const Range range : ranges) {
    for (unsigned bits = 1; bits <= 8; ++bits) {
      const std::vector<float> x = {range.lo, range.hi};
      std::vector<std::byte> packed(packed_size(2, bits));
      std::vector<float> back(2);
      quantise(x, range, bits, packed);
      dequantise(packed, range, bits, back);
      EXPECT_EQ(back, x) << bits << " bits";
      quantise_stochastic(x, range, bits, {1, 2, 3}, packed);
      dequantise(packed, range, bits, back);
      EXPECT_EQ(back, x) << bits << " bits";
    }
  }
}

TEST(Quantise, StochasticCodesAreNeighboursAndAverageToTheValue) {
  constexpr size_t kDraws = 200000;
  for (const unsigned bits : {1U, 2U, 4U, 8U}) {
    for (const float part : {0.03F, 0.37F, 0.5F, 0.71F, 0.99F}) {
      const std::vector<float> x(kDraws, part);
      std::vector<std::byte> packed(packed_size(kDraws, bits));
      quantise_stochastic(x, {0.0F, 1.0F}, bits, {0x12345678, 0x9abcdef0, (uint64_t{1} << 32) - 1000}, packed);
      const double t = scaled(part, {0.0F, 1.0F}, bits);
      double sum = 0;
      for (size_t i = 0; i < kDraws; ++i) {
        const unsigned code = code_at(packed, i, bits);
        ASSERT_TRUE(code == std::floor(t) || code == std::ceil(t));
        sum += code;
      }
      const double rest = t - std::floor(t);
      const double deviation = std::sqrt(rest * (1 - rest) / kDraws);
      EXPECT_NEAR(sum / kDraws, t, 4.5 * deviation + 1e-7) << bits << " bits, " << part;
    }
  }
}

TEST(Quantise, StochasticCodesFollowTheFormula) {
  const Dither dither{3, 4, 0xffffff00};  // the upper half of the index changes on the way
  for (unsigned bits = 1; bits <= 8; ++bits) {
    for (const float scale : {1e-44F, 1e-20F, 1.0F, 1e30F}) {
      auto x = normal(20000, scale, bits);
      const Range range = range_of(x);
      // A quarter stands where the fraction is the dither of its place, as near as float32 allows.
      for (size_t i = 0; i < x.size(); i += 4) {
        const float t = static_cast<float>(i % ((1U << bits) - 1)) + dither_at(dither, dither.first_index + i);
        const float value = range.lo + (range.hi - range.lo) * (t / static_cast<float>((1U << bits) - 1));
        x[i] = std::clamp(value, range.lo, range.hi);
      }
      std::vector<std::byte> packed(packed_size(x.size(), bits));
      quantise_stochastic(x, range, bits, dither, packed);
      for (size_t i = 0; i < x.size(); ++i) {
        const float t = scaled(x[i], range, bits);
        const bool up = dither_at(dither, dither.first_index + i) < t - std::floor(t);
        ASSERT_EQ(code_at(packed, i, bits), static_cast<unsigned>(std::floor(t)) + (up ? 1 : 0))
            << bits << " bits, element " << i;
      }
    }
  }
}

TEST(Quantise, StochasticDependsOnTheIndexAlone) {
  const auto x = normal(2000, 1, 9);
  const Range range = range_of(x);
  const Dither dither{7, 8, 0xffffff00};  // the upper half of the index changes on the way
  std::vector<std::byte> whole(packed_size(x.size(), 5));
  quantise_stochastic(x, range, 5, dither, whole);
  std::vector<std::byte> parts;
  for (size_t begin = 0; begin < x.size(); begin += 8) {
    std::vector<std::byte> part(5);
    quantise_stochastic(std::span(x).subspan(begin, 8), range, 5, {7, 8, dither.first_index + begin}, part);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  EXPECT_EQ(parts, whole);
}

TEST(Dither, IsUniformAndUncorrelatedBetweenNeighboursAndKeys) {
  constexpr size_t kDraws = 100000;
  std::vector<int> bins(64);
  double product = 0;
  double across = 0;
  for (size_t i = 0; i < kDraws; ++i) {
    const float u = dither_at({11, 22, 0}, i);
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    ++bins[static_cast<size_t>(u * 64)];
    product += (u - 0.5) * (dither_at({11, 22, 0}, i + 1) - 0.5);
    across += (u - 0.5) * (dither_at({12, 22, 0}, i) - 0.5);
  }
  double chi = 0;
  for (const int count : bins) chi += std::pow(count - kDraws / 64.0, 2) / (kDraws / 64.0);
  EXPECT_LT(chi, 63 + 5 * std::sqrt(2 * 63.0));
  const double limit = 4.5 * std::sqrt(static_cast<double>(kDraws)) / 12;
  EXPECT_LT(std::abs(product), limit);
  EXPECT_LT(std::abs(across), limit);
}

}  // namespace
}  // namespace strait::kernels
