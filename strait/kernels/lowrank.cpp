#include "strait/kernels/lowrank.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "strait/kernels/prefetch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/lowrank.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>

#include "strait/kernels/dispatch.h"

// Plain loops, which the compiler turns into the target's vector instructions; it contracts no product and sum.
HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kSums = 16;  // lanes of a product
constexpr size_t kRows = 4;   // that are taken at once

HWY_INLINE float product(const float* x, const float* y, size_t count) {
  std::array<float, kSums> lanes{};
  size_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (size_t lane = 0; lane < kSums; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  }
  for (size_t lane = 0; i + lane < count; ++lane) lanes[lane] += x[i + lane] * y[i + lane];
  for (size_t step = 1; step < kSums; step *= 2) {
    for (size_t lane = 0; lane < kSums; lane += 2 * step) lanes[lane] += lanes[lane + step];
  }
  return lanes[0];
}

}  // namespace

void multiply_rows(const float* m, size_t rows, size_t columns, const float* right, size_t rank, float* left,
                   size_t length) {
  for (size_t row = 0; row < rows; ++row) {
    const float* const x = m + row * columns;
    for (size_t i = 0; i < columns; i += 16) prefetch(x + columns + i);
    for (size_t j = 0; j < rank; ++j) left[j * length + row] = product(x, right + j * columns, columns);
  }
}

void add_rows(const float* m, size_t rows, size_t columns, const float* left, size_t rank, size_t length,
              size_t begin, size_t end, float* right) {
  size_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    const float* const x0 = m + row * columns;
    const float* const x1 = x0 + columns;
    const float* const x2 = x1 + columns;
    const float* const x3 = x2 + columns;
    for (size_t j = 0; j < rank; ++j) {
      const float* const by = left + j * length + row;
      float* const out = right + j * columns;
      for (size_t i = begin; i < end; ++i) {
        out[i] = (((out[i] + x0[i] * by[0]) + x1[i] * by[1]) + x2[i] * by[2]) + x3[i] * by[3];
      }
    }
  }
  for (; row < rows; ++row) {
    for (size_t j = 0; j < rank; ++j) {
      const float by = left[j * length + row];
      float* const out = right + j * columns;
      for (size_t i = begin; i < end; ++i) out[i] += m[row * columns + i] * by;
    }
  }
}

void orthonormalise_vectors(size_t length, size_t rank, float* vectors) {
  constexpr float kRest = 0x1p-16F;
  for (size_t j = 0; j < rank; ++j) {
    float* const v = vectors + j * length;
    const float before = std::sqrt(product(v, v, length));
    float norm = before;
    for (int pass = 0; pass < 2 && j > 0 && norm > before * kRest; ++pass) {
      for (size_t i = 0; i < j; ++i) {
        const float* const u = vectors + i * length;
        const float by = product(u, v, length);
        for (size_t k = 0; k < length; ++k) v[k] -= by * u[k];
      }
      norm = std::sqrt(product(v, v, length));
    }
    if (!(norm > before * kRest)) {
      std::fill_n(v, length, 0.0F);
    } else {
      for (size_t k = 0; k < length; ++k) v[k] /= norm;
    }
  }
}

void multiply_vectors(const float* left, size_t length, const float* right, size_t rank, size_t rows,
                      size_t columns, float* out) {
  for (size_t row = 0; row < rows; ++row) {
    float* const y = out + row * columns;
    std::fill_n(y, columns, 0.0F);
    for (size_t j = 0; j < rank; ++j) {
      const float by = left[j * length + row];
      const float* const q = right + j * columns;
      for (size_t i = 0; i < columns; ++i) y[i] += q[i] * by;
    }
  }
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(multiply_rows);
HWY_EXPORT(add_rows);
HWY_EXPORT(orthonormalise_vectors);
HWY_EXPORT(multiply_vectors);

void multiply(const MatrixRows& m, std::span<const float> right, size_t first, size_t length,
              std::span<float> left) {
  STRAIT_KERNEL(multiply_rows)
  (m.elements.data(), m.rows(), m.columns, right.data(), right.size() / m.columns, left.data() + first, length);
}

void add_transposed(const MatrixRows& m, std::span<const float> left, size_t first, size_t length, size_t begin,
                    size_t end, std::span<float> right) {
  STRAIT_KERNEL(add_rows)
  (m.elements.data(), m.rows(), m.columns, left.data() + first, left.size() / length, length, begin, end,
   right.data());
}

void orthonormalise(size_t length, std::span<float> vectors) {
  STRAIT_KERNEL(orthonormalise_vectors)(length, vectors.size() / length, vectors.data());
}

void multiply_factors(std::span<const float> left, size_t first, size_t length, std::span<const float> right,
                      size_t columns, std::span<float> out) {
  STRAIT_KERNEL(multiply_vectors)
  (left.data() + first, length, right.data(), left.size() / length, out.size() / columns, columns, out.data());
}

}  // namespace strait::kernels
#endif
