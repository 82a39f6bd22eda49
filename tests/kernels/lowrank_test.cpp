#include "strait/kernels/lowrank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace strait::kernels {
namespace {

std::vector<float> normals(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

/// The documented order: 16 lanes, which are added neighbour to neighbour.
float product_of(const float* x, const float* y, size_t count) {
  std::vector<float> lanes(16);
  for (size_t k = 0; k < count; ++k) {
    const float term = x[k] * y[k];
    lanes[k % 16] = lanes[k % 16] + term;
  }
  for (; lanes.size() > 1; lanes.resize(lanes.size() / 2)) {
    for (size_t i = 0; i < lanes.size() / 2; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
  }
  return lanes[0];
}

struct Sizes {
  size_t rows;
  size_t columns;
  size_t rank;
};

const std::vector<Sizes> kSizesOfMatrices = {{1, 1, 1},    {5, 16, 1}, {7, 33, 3},
                                             {64, 100, 4}, {13, 7, 2}, {130, 257, 5}};

TEST(LowRank, ProductsHaveTheDocumentedOrder) {
  for (const auto& [rows, columns, rank] : kSizesOfMatrices) {
    const auto m = normals(rows * columns, 1);
    const auto right = normals(rank * columns, 2);
    const size_t length = rows + 3;
    std::vector<float> left(rank * length, 7);
    multiply({m, columns}, right, 2, length, left);
    for (size_t j = 0; j < rank; ++j) {
      for (size_t i = 0; i < length; ++i) {
        const bool inside = i >= 2 && i < rows + 2;
        EXPECT_EQ(left[j * length + i],
                  inside ? product_of(m.data() + (i - 2) * columns, right.data() + j * columns, columns) : 7);
      }
    }
  }
}

TEST(LowRank, SumsOverRowsAndVectorsGoOneByOne) {
  for (const auto& [rows, columns, rank] : kSizesOfMatrices) {
    const auto m = normals(rows * columns, 3);
    const auto left = normals(rank * rows, 4);
    auto right = normals(rank * columns, 5);
    auto expected = right;
    const size_t begin = columns / 3;
    add_transposed({m, columns}, left, 0, rows, begin, columns, right);
    for (size_t j = 0; j < rank; ++j) {
      for (size_t row = 0; row < rows; ++row) {
        for (size_t i = begin; i < columns; ++i) {
          const float term = m[row * columns + i] * left[j * rows + row];
          expected[j * columns + i] = expected[j * columns + i] + term;
        }
      }
    }
    EXPECT_EQ(right, expected);

    const size_t first = rows / 2;
    std::vector<float> out((rows - first) * columns, 7);
    multiply_factors(left, first, rows, right, columns, out);
    for (size_t row = first; row < rows; ++row) {
      for (size_t i = 0; i < columns; ++i) {
        float sum = 0;
        for (size_t j = 0; j < rank; ++j) {
          const float term = left[j * rows + row] * right[j * columns + i];
          sum = sum + term;
        }
        EXPECT_EQ(out[(row - first) * columns + i], sum);
      }
    }
  }
}

double product_in_double(const std::vector<float>& vectors, size_t length, size_t a, size_t b) {
  double sum = 0;
  for (size_t i = 0; i < length; ++i) {
    sum += static_cast<double>(vectors[a * length + i]) * vectors[b * length + i];
  }
  return sum;
}

TEST(LowRank, VectorsBecomeOrthonormalAndKeepTheirSpan) {
  constexpr size_t kLength = 500;
  constexpr size_t kRank = 6;
  auto vectors = normals(kLength * kRank, 6);
  for (size_t i = 0; i < kLength; ++i) {  // nearly parallel, of other sizes, and zero
    vectors[2 * kLength + i] = vectors[i] + 1e-3F * vectors[2 * kLength + i];
    vectors[3 * kLength + i] *= 1e-12F;
    vectors[5 * kLength + i] = 0;
  }
  const auto before = vectors;
  orthonormalise(kLength, vectors);
  for (size_t a = 0; a + 1 < kRank; ++a) {
    for (size_t b = 0; b + 1 < kRank; ++b) {
      EXPECT_NEAR(product_in_double(vectors, kLength, a, b), a == b ? 1 : 0, 1e-6) << a << " " << b;
    }
  }
  for (size_t i = 0; i < kLength; ++i) EXPECT_EQ(vectors[5 * kLength + i], 0);
  for (size_t a = 0; a < kRank; ++a) {  // a vector is the sum of its parts along the first a + 1
    double left = 0;
    for (size_t i = 0; i < kLength; ++i) {
      double part = 0;
      for (size_t b = 0; b <= a; ++b) {
        double along = 0;
        for (size_t k = 0; k < kLength; ++k) {
          along += static_cast<double>(before[a * kLength + k]) * vectors[b * kLength + k];
        }
        part += along * vectors[b * kLength + i];
      }
      left = std::max(left, std::abs(before[a * kLength + i] - part));
    }
    EXPECT_LE(left, 1e-5 * std::sqrt(product_in_double(before, kLength, a, a))) << a;
  }
}

TEST(LowRank, AVectorInTheSpanOfOthersBecomesZero) {
  constexpr size_t kLength = 300;
  auto vectors = normals(kLength * 3, 7);
  for (size_t i = 0; i < kLength; ++i) vectors[2 * kLength + i] = 0.3F * vectors[i] - 2 * vectors[kLength + i];
  orthonormalise(kLength, vectors);
  for (size_t i = 0; i < kLength; ++i) EXPECT_EQ(vectors[2 * kLength + i], 0);
}

}  // namespace
}  // namespace strait::kernels
