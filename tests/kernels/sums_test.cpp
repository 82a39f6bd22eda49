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

TEST(Entropy, IsThatOfTheMagnitudesInBits) {
  for (const size_t size : kSizes) {
    for (const float scale : {1.0F, 1e-36F, 1e30F}) {
      auto x = numbers(size, static_cast<unsigned>(size));
      for (float& value : x) value *= scale;
      const double expected = entropy_of(x);
      EXPECT_NEAR(entropy(x), expected, 2e-6 * (1 + expected)) << size;
    }
  }
}

TEST(Entropy, IsExactForPowersOfTwo) {
  EXPECT_EQ(entropy(std::vector<float>(70, 0.0F)), 0);
  EXPECT_EQ(entropy(std::vector<float>{0, 0, -3, 0}), 0);
  EXPECT_EQ(entropy(std::vector<float>(64, -1.5F)), 6);
  EXPECT_EQ(entropy(std::vector<float>{2, 1, -1}), 1.5F);
}

TEST(Entropy, ItsLogarithmIsTheDocumentedPolynomial) {
  // Two elements: p and 1 - p, which is below 1/2, so that both have exact differences.
  const float p = 0.6875F;
  const auto log2_by_terms = [](float f, float e) {
    float quotient = kLog2Terms[0];
    for (size_t i = 1; i < kLog2Terms.size(); ++i) {
      quotient = quotient * f;
      quotient = quotient + kLog2Terms[i];
    }
    const float product = f * quotient;
    return e + product;
  };
  const float first = p * -log2_by_terms(2 * p - 1, -1);               // 1 + f = 1.375, below the root of 2
  const float second = (1 - p) * -log2_by_terms(4 * (1 - p) - 1, -2);  // 1 + f = 1.25
  EXPECT_EQ(entropy(std::vector<float>{p, 1 - p}), first + second);
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
