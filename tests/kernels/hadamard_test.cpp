#include "strait/kernels/hadamard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/numbers.h"

namespace strait::kernels {
namespace {

constexpr uint64_t kRotationSigns = 0x9e3779b97f4a7c15;

/// Element (i, j) of the matrix: -1 to the power of the bits that i and j share.
double entry(size_t i, size_t j) { return std::popcount(i & j) % 2 == 0 ? 1 : -1; }

double sign_of(size_t i) { return (kRotationSigns >> i & 1) != 0 ? -1 : 1; }

TEST(Hadamard, IsTheMatrixOverEightBehindTheSigns) {
  const auto x = numbers(3 * 64 + 17, 1);
  std::vector<float> got(x.size());
  rotate(x, kRotationSigns, got);
  for (size_t begin = 0; begin < 3 * 64; begin += 64) {
    for (size_t i = 0; i < 64; ++i) {
      double sum = 0;
      for (size_t j = 0; j < 64; ++j) sum += entry(i, j) / 8 * sign_of(j) * x[begin + j];
      EXPECT_NEAR(got[begin + i], sum, 1e-5) << i;
    }
  }
  for (size_t i = size_t{3} * 64; i < x.size(); ++i) EXPECT_EQ(got[i], x[i]);
}

TEST(Hadamard, AdditionsHaveTheDocumentedOrder) {
  const auto x = numbers(64, 1);
  std::vector<float> expected(64);
  for (size_t i = 0; i < 64; ++i) expected[i] = x[i] / 8 * static_cast<float>(sign_of(i));
  for (size_t h = 1; h < 64; h *= 2) {
    for (size_t i = 0; i < 64; ++i) {
      if ((i & h) != 0) continue;
      const float a = expected[i];
      const float b = expected[i + h];
      expected[i] = a + b;
      expected[i + h] = a - b;
    }
  }
  std::vector<float> got(64);
  rotate(x, kRotationSigns, got);
  EXPECT_EQ(got, expected);
}

TEST(Hadamard, GivesTheLargestMagnitudeOfBlocksAndOfWhatIsLeft) {
  for (const size_t place : {size_t{0}, size_t{63}, size_t{64 + 17}, size_t{2 * 64 + 2}}) {
    for (const float value : {-7.5F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
      auto x = std::vector<float>(2 * 64 + 3, 0.5F);
      x[place] = value;
      EXPECT_EQ(rotate(x, kRotationSigns, x), std::bit_cast<uint32_t>(value) & 0x7fffffff) << place;
    }
  }
}

TEST(Hadamard, BackIsTheWayBackAndKeepsTheNorm) {
  const auto x = numbers(5 * 64 + 3, 1);
  std::vector<float> there(x.size());
  rotate(x, kRotationSigns, there);
  double before = 0;
  double after = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    before += static_cast<double>(x[i]) * x[i];
    after += static_cast<double>(there[i]) * there[i];
  }
  EXPECT_NEAR(after / before, 1, 1e-6);
  EXPECT_TRUE(rotate_back(there, kRotationSigns, there));  // in place
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(there[i], x[i], 1e-5);
}

TEST(Hadamard, BackTellsWhatIsNotFinite) {
  for (const size_t place : {0U, 63U, 64U, 69U}) {
    std::vector<float> x(70, 0.5F);
    x[place] = INFINITY;
    EXPECT_FALSE(rotate_back(x, kRotationSigns, x)) << place;
  }
  std::vector<float> x(64, std::numeric_limits<float>::max());
  EXPECT_FALSE(rotate_back(x, 0, x));
}

}  // namespace
}  // namespace strait::kernels
