#include "strait/kernels/sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/numbers.h"

namespace strait::kernels {
namespace {

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

TEST(Sums, HaveTheDocumentedOrder) {
  for (const size_t size : kSizes) {
    const auto x = numbers(size, static_cast<unsigned>(size));
    std::vector<float> magnitudes;
    std::vector<float> deviations;
    std::vector<float> squared_deviations;
    std::vector<float> positive;
    std::vector<float> negative;
    size_t negatives = 0;
    for (const float value : x) {
      magnitudes.push_back(std::fabs(value));
      deviations.push_back(std::fabs(value - 0.3F));
      squared_deviations.push_back((value - 0.3F) * 0.5F * ((value - 0.3F) * 0.5F));
      positive.push_back(value < 0 ? 0 : value);
      negative.push_back(value < 0 ? value : 0);
      negatives += value < 0 ? 1 : 0;
    }
    EXPECT_EQ(sum(x), tree_sum(x)) << size;
    EXPECT_EQ(sum_of_magnitudes(x), tree_sum(magnitudes)) << size;
    EXPECT_EQ(sum_of_deviations(x, 0.3F), tree_sum(deviations)) << size;
    EXPECT_EQ(sum_of_squared_deviations(x, 0.3F, 0.5F), tree_sum(squared_deviations)) << size;
    const Sides sides = sums_by_sign(x);
    EXPECT_EQ(sides.positive, tree_sum(positive)) << size;
    EXPECT_EQ(sides.negative, tree_sum(negative)) << size;
    EXPECT_EQ(sides.negatives, negatives) << size;
  }
}

TEST(Sums, WhatIsNotFiniteIsSeenWhereverItStands) {
  for (const size_t size : {1U, 100U, 128U, 1000U}) {
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
        auto x = numbers(size, 7);
        x[at] = bad;
        EXPECT_FALSE(std::isfinite(sum(x)));
        EXPECT_FALSE(std::isfinite(sum_of_magnitudes(x)));
        EXPECT_FALSE(std::isfinite(sum_of_squared_deviations(x, 1, 1)));
        const Sides sides = sums_by_sign(x);
        EXPECT_FALSE(std::isfinite(sides.positive) && std::isfinite(sides.negative));
      }
    }
  }
}

}  // namespace
}  // namespace strait::kernels
