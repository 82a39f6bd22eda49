#include "strait/kernels/select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "strait/kernels/masked.h"

namespace strait::kernels {
namespace {

std::vector<size_t> positions_of(std::span<const uint64_t> mask) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < mask.size() * 64; ++i) {
    if ((mask[i / 64] >> (i % 64) & 1) != 0) positions.push_back(i);
  }
  return positions;
}

/// The definition: a stable sort by falling magnitude keeps the lower of two equal ones in front.
std::vector<size_t> sorted_selection(const std::vector<float>& x, size_t k) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return std::abs(x[i]); });
  order.resize(k);
  std::ranges::sort(order);
  return order;
}

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

std::vector<float> make(const std::string& kind, size_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const float value = normal(random);
    if (kind == "normal") x[i] = value;
    if (kind == "relu") x[i] = std::max(value, 0.0F);
    if (kind == "ties") x[i] = std::round(value * 2) / 2;
    if (kind == "constant") x[i] = i % 2 == 0 ? -1.5F : 1.5F;
    if (kind == "zero") x[i] = i % 3 == 0 ? -0.0F : 0.0F;
    if (kind == "denormal") x[i] = std::ldexp(value, -145);
    if (kind == "huge")
      x[i] = std::copysign(std::numeric_limits<float>::max() * std::abs(std::sin(value)), value);
    if (kind == "rising") x[i] = static_cast<float>(i);
    if (kind == "uneven")
      x[i] = i % 32 < 8 ? 100 + value : value;  // a sample of runs can see the large ones only
    if (kind == "near") x[i] = std::nextafter(1.0F, value > 0 ? 2.0F : 0.0F);
  }
  return x;
}

TEST(Select, AgreesWithAStableSort) {
  SelectScratch scratch;
  for (const char* kind :
       {"normal", "relu", "ties", "constant", "zero", "denormal", "huge", "rising", "uneven", "near"}) {
    for (const size_t n : {1U, 2U, 5U, 63U, 64U, 65U, 200U, 1000U, 4099U, 16384U}) {
      const auto x = make(kind, n);
      for (const size_t k : {size_t{1}, n / 100 + 1, n / 10 + 1, n / 2 + 1, n - 1, n}) {
        if (k < 1 || k > n) continue;
        std::vector<uint64_t> mask(mask_words(n), ~uint64_t{0});
        const auto largest = select_largest(x, k, scratch, mask);
        std::vector<float> kept(largest.begin(), largest.end());
        ASSERT_EQ(kept.size(), k);
        const auto expected = sorted_selection(x, k);
        ASSERT_EQ(positions_of(mask), expected) << kind << ", " << k << " of " << n;
        for (size_t i = 0; i < k; ++i) ASSERT_EQ(bits_of(kept[i]), bits_of(x[expected[i]]));
        ASSERT_EQ(count_masked(mask), k);
        kept.assign(k, NAN);
        gather_masked(x, mask, kept);
        for (size_t i = 0; i < k; ++i) ASSERT_EQ(kept[i], x[expected[i]]);
        std::vector<float> spread(n, NAN);
        scatter_masked(kept, mask, spread);
        std::vector<float> masked(n, 0.0F);
        for (const size_t position : expected) masked[position] = x[position];
        ASSERT_EQ(spread, masked);
      }
    }
  }
}

TEST(Select, SumsAndDifferencesAreThoseOfTheWholeTensors) {
  SelectScratch scratch;
  for (const char* kind : {"normal", "relu", "ties", "zero", "uneven"}) {
    for (const size_t n : {1U, 63U, 65U, 1000U, 8195U}) {
      const auto x = make(kind, n);
      auto y = make("normal", n + 1);
      y.resize(n);
      std::vector<float> sums(n);
      std::vector<float> differences(n);
      for (size_t i = 0; i < n; ++i) sums[i] = x[i] + y[i];
      for (size_t i = 0; i < n; ++i) differences[i] = x[i] - y[i];
      for (const size_t k : {size_t{1}, n / 10 + 1, n / 2 + 1, n}) {
        if (k > n) continue;
        std::vector<uint64_t> mask(mask_words(n));
        const auto masked = [&](std::span<const float> kept) {
          return std::pair(mask, std::vector<float>(kept.begin(), kept.end()));
        };
        const auto of_differences = masked(select_largest_of_differences(x, y, k, scratch, mask));
        ASSERT_EQ(of_differences, masked(select_largest(differences, k, scratch, mask)))
            << kind << ", " << k << " of " << n;
        std::vector<float> written(n);
        const auto of_sums = masked(select_largest_of_sums(x, y, written, k, scratch, mask));
        ASSERT_EQ(of_sums, masked(select_largest(sums, k, scratch, mask))) << kind << ", " << k << " of " << n;
        ASSERT_EQ(written, sums);
      }
    }
  }
}

TEST(Select, ANonFiniteElementIsAmongTheLargest) {
  SelectScratch scratch;
  for (const float bad : {INFINITY, -INFINITY, std::nanf(""), -std::nanf("")}) {
    for (const size_t position : {0U, 50U, 99U}) {
      auto x = make("huge", 100);
      x[position] = bad;
      std::vector<uint64_t> mask(mask_words(x.size()));
      EXPECT_EQ(bits_of(select_largest(x, 1, scratch, mask)[0]), bits_of(bad));
      EXPECT_EQ(positions_of(mask), std::vector<size_t>{position});
    }
  }
}

TEST(Select, OfDrawsAgreesWithAStableSort) {
  SelectScratch scratch;
  for (const uint64_t first : {uint64_t{0}, uint64_t{12345}, (uint64_t{1} << 32) - 70, uint64_t{1} << 40}) {
    const Dither draws{0x12345678, 0x9abcdef0, first};
    for (const size_t n : {1U, 2U, 63U, 64U, 65U, 200U, 4099U, 40000U}) {
      std::vector<size_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, {}, [&](size_t i) { return draw_at(draws, first + i) >> 1; });
      for (const size_t k : {size_t{1}, n / 100 + 1, n / 10 + 1, n / 2 + 1, n - 1, n}) {
        if (k < 1 || k > n) continue;
        std::vector<uint64_t> mask(mask_words(n), ~uint64_t{0});
        select_least_draws(draws, n, k, scratch, mask);
        std::vector<size_t> expected(order.begin(), order.begin() + static_cast<ptrdiff_t>(k));
        std::ranges::sort(expected);
        ASSERT_EQ(positions_of(mask), expected) << first << ", " << k << " of " << n;
      }
    }
  }
}

}  // namespace
}  // namespace strait::kernels
