#include "strait/kernels/index_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "strait/kernels/masked.h"

namespace strait::kernels {
namespace {

using Positions = std::vector<uint32_t>;

Positions random_set(size_t n, size_t k, unsigned seed) {
  Positions all(n);
  std::iota(all.begin(), all.end(), 0);
  Positions set;
  std::mt19937 random(seed);
  std::ranges::sample(all, std::back_inserter(set), static_cast<std::ptrdiff_t>(k), random);
  return set;
}

std::vector<uint64_t> mask_of(const Positions& set, size_t n) {
  std::vector<uint64_t> mask(mask_words(n));
  for (const uint32_t position : set) mask[position / 64] |= uint64_t{1} << (position % 64);
  return mask;
}

using Mask = std::vector<uint64_t>;

/// The code of the documentation as a text of bits, padded.
std::string rice_text(const Positions& set, unsigned r) {
  std::string text;
  uint32_t expected = 0;
  for (const uint32_t position : set) {
    const uint32_t gap = position - expected;
    text.append(gap >> r, '0');
    text += '1';
    for (unsigned bit = 0; bit < r; ++bit) text += (gap >> bit & 1) != 0 ? '1' : '0';
    expected = position + 1;
  }
  text.resize((text.size() + 7) / 8 * 8, '0');
  return text;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size() / 8);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '1') bytes[i / 8] |= static_cast<std::byte>(1U << (i % 8));
  }
  return bytes;
}

struct Case {
  size_t n;
  size_t k;
};

const Case kCases[] = {{1, 1},    {2, 1},     {9, 4},      {64, 64},    {64, 1},   {65, 33},
                       {1000, 1}, {1000, 10}, {1000, 999}, {5000, 500}, {70000, 3}};

TEST(IndexCode, RiceFollowsItsDefinitionForEveryParameter) {
  for (const auto& [n, k] : kCases) {
    for (unsigned r = 0; r <= kMaxRiceParameter; ++r) {
      const auto set = random_set(n, k, r);
      std::vector<std::byte> out(rice_bound(n, k, r));
      const auto used = write_rice(mask_of(set, n), r, out);
      ASSERT_TRUE(used) << k << " of " << n << ", r = " << r;
      out.resize(*used);
      ASSERT_EQ(out, bytes_of(rice_text(set, r)));
      Mask back(mask_words(n));
      ASSERT_TRUE(read_rice(out, n, k, r, back)) << k << " of " << n << ", r = " << r;
      ASSERT_EQ(back, mask_of(set, n));
    }
  }
}

TEST(IndexCode, ExtremeSetsStayWithinTheBound) {
  for (const auto& [n, k] : kCases) {
    Positions first(k);
    Positions last(k);
    std::iota(first.begin(), first.end(), 0);
    std::iota(last.begin(), last.end(), static_cast<uint32_t>(n - k));
    for (const unsigned r : {0U, 1U, rice_parameter(n, k), 30U}) {
      for (const auto& set : {first, last}) {
        std::vector<std::byte> out(rice_bound(n, k, r));
        const auto used = write_rice(mask_of(set, n), r, out);
        ASSERT_TRUE(used);
        Mask back(mask_words(n));
        ASSERT_TRUE(read_rice(std::span(out).first(*used), n, k, r, back));
        ASSERT_EQ(back, mask_of(set, n));
        ASSERT_FALSE(write_rice(mask_of(set, n), r, std::span(out).first(*used - 1)));
      }
    }
  }
}

TEST(IndexCode, RiceParameterIsCheapestOnAverage) {
  EXPECT_EQ(rice_parameter(10, 10), 0U);
  EXPECT_EQ(rice_parameter(10, 5), 0U);
  for (const auto& [n, k] : kCases) {
    const double go_on = static_cast<double>(n - k) / static_cast<double>(n);
    const auto cost = [&](unsigned r) {
      const double s = std::pow(go_on, std::ldexp(1.0, static_cast<int>(r)));
      return 1 + r + s / (1 - s);
    };
    const unsigned best = rice_parameter(n, k);
    for (unsigned r = 0; r <= kMaxRiceParameter; ++r) EXPECT_LE(cost(best), cost(r) * (1 + 1e-9)) << r;
  }
}

TEST(IndexCode, RiceRejectsEveryOtherLengthAndPadding) {
  const auto set = random_set(1000, 100, 5);
  const unsigned r = rice_parameter(1000, 100);
  const auto good = bytes_of(rice_text(set, r));
  const size_t k = set.size();
  Mask back(mask_words(1 << 20));
  const auto fits = [&](std::span<const std::byte> code, size_t n, unsigned parameter) {
    return read_rice(code, n, k, parameter, std::span(back).first(mask_words(n)));
  };
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(fits(std::span(good).first(size), 1000, r)) << size;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(fits(longer, 1000, r));
  EXPECT_FALSE(fits(good, set.back(), r));
  EXPECT_TRUE(fits(good, set.back() + 1, r));
  const std::vector<std::byte> zeros(100000);
  EXPECT_FALSE(fits(zeros, 1000, r));
  EXPECT_FALSE(fits(zeros, 1 << 20, 30));
  const auto padded = bytes_of("1000000000000000").front() | std::byte{0x80};
  EXPECT_FALSE(read_rice({&padded, 1}, 10, 1, 0, std::span(back).first(1)));
}

TEST(IndexCode, RiceNeverReadsOutsideRandomBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random() % 40);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() & random());
    const size_t k = 1 + random() % 40;
    const size_t n = k + random() % 300;
    Mask mask(mask_words(n));
    if (!read_rice(bytes, n, k, random() % 31, mask)) continue;
    ASSERT_EQ(count_masked(mask), k);
    ASSERT_TRUE(n % 64 == 0 || mask.back() >> n % 64 == 0);
  }
}

TEST(IndexCode, BitmapRoundTripsAndIsChecked) {
  for (const auto& [n, k] : kCases) {
    const auto set = random_set(n, k, 1);
    std::vector<std::byte> out(bitmap_size(n));
    write_bitmap(mask_of(set, n), out);
    Mask back(mask_words(n));
    ASSERT_TRUE(read_bitmap(out, n, k, back));
    ASSERT_EQ(back, mask_of(set, n));
    EXPECT_FALSE(read_bitmap(out, n, k + 1, back));
    EXPECT_FALSE(read_bitmap(out, n, k - 1, back));
    EXPECT_FALSE(read_bitmap(std::span(out).first(out.size() - 1), n, k, back));
    if (n % 8 != 0) {
      // One position moved into the padding: the count is right, the place is not.
      out[set.front() / 8] &= ~static_cast<std::byte>(1U << (set.front() % 8));
      out.back() |= std::byte{0x80};
      EXPECT_FALSE(read_bitmap(out, n, k, back));
    }
  }
}

}  // namespace
}  // namespace strait::kernels
