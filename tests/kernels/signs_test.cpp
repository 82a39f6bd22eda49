#include "strait/kernels/signs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace strait::kernels {
namespace {

std::vector<float> numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.2F, 1);
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

/// Neighbours added up until one is left, over rows and then over the elements of the row.
float tree_sum(std::vector<float> terms) {
  terms.resize((terms.size() + kSumLanes - 1) / kSumLanes * kSumLanes);
  size_t rows = terms.size() / kSumLanes;
  for (; rows > 1; rows = (rows + 1) / 2) {
    for (size_t row = 0; row < (rows + 1) / 2; ++row) {
      for (size_t i = 0; i < kSumLanes; ++i) {
        const float left = terms[2 * row * kSumLanes + i];
        terms[row * kSumLanes + i] = 2 * row + 1 < rows ? left + terms[(2 * row + 1) * kSumLanes + i] : left;
      }
    }
  }
  for (size_t left = kSumLanes; left > 1; left /= 2) {
    for (size_t i = 0; i < left / 2; ++i) terms[i] = terms[2 * i] + terms[2 * i + 1];
  }
  return terms[0];
}

const std::vector<size_t> kSizes = {1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 1000, 1024, 4096, 5001, 65537};

TEST(Signs, SumsHaveTheDocumentedOrder) {
  for (const size_t size : kSizes) {
    const auto x = numbers(size, static_cast<unsigned>(size));
    std::vector<float> magnitudes;
    std::vector<float> positive;
    std::vector<float> negative;
    size_t negatives = 0;
    for (const float value : x) {
      magnitudes.push_back(std::fabs(value));
      positive.push_back(value < 0 ? 0 : value);
      negative.push_back(value < 0 ? value : 0);
      negatives += value < 0 ? 1 : 0;
    }
    EXPECT_EQ(sum_of_magnitudes(x), tree_sum(magnitudes)) << size;
    const Sides sides = sums_by_sign(x);
    EXPECT_EQ(sides.positive, tree_sum(positive)) << size;
    EXPECT_EQ(sides.negative, tree_sum(negative)) << size;
    EXPECT_EQ(sides.negatives, negatives) << size;
  }
}

TEST(Signs, WhatIsNotFiniteIsSeenWhereverItStands) {
  for (const size_t size : {1U, 100U, 128U, 1000U}) {
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
        auto x = numbers(size, 7);
        x[at] = bad;
        EXPECT_FALSE(std::isfinite(sum_of_magnitudes(x)));
        const Sides sides = sums_by_sign(x);
        EXPECT_FALSE(std::isfinite(sides.positive) && std::isfinite(sides.negative));
      }
    }
  }
}

TEST(Signs, ABitForEachElementAndBack) {
  for (const size_t size : kSizes) {
    auto x = numbers(size, static_cast<unsigned>(size) + 1);
    x[0] = -0.0F;  // no number below 0
    std::vector<std::byte> packed((size + 7) / 8);
    pack_signs(x, packed);
    for (size_t i = 0; i < packed.size() * 8; ++i) {
      const bool is_set = (std::to_integer<unsigned>(packed[i / 8]) >> (i % 8) & 1) != 0;
      EXPECT_EQ(is_set, i < size && x[i] < 0) << i << " of " << size;
    }
    std::vector<float> out(size, 9);
    unpack_signs(packed, 1.5F, -0.25F, out);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(out[i], x[i] < 0 ? -0.25F : 1.5F) << i << " of " << size;
  }
}

}  // namespace
}  // namespace strait::kernels
