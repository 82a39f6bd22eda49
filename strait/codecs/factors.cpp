#include "strait/codecs/factors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/lowrank.h"
#include "strait/kernels/quantise.h"

namespace strait {

MatrixLayout matrix_layout_from(OperatorSpec& spec) {
  const std::string matrix = spec.option("matrix", "dimensions");
  if (matrix != "dimensions" && matrix != "square") spec.reject("matrix", matrix, "dimensions or square");
  return matrix == "square" ? MatrixLayout::square : MatrixLayout::dimensions;
}

MatrixShape matrix_of(const MessageMeta& meta, MatrixLayout layout) {
  MatrixShape shape{meta.elements(), 0, 0};
  if (meta.shape.size() == 4) {
    shape.columns = static_cast<size_t>(meta.shape[2] * meta.shape[3]);
  } else {
    shape.columns = meta.shape.empty() ? 1 : static_cast<size_t>(meta.shape.back());
  }
  const bool is_vector = shape.columns == 1 || shape.columns == shape.elements;
  if (layout == MatrixLayout::square || is_vector) {
    shape.columns = static_cast<size_t>(std::ceil(std::sqrt(static_cast<double>(shape.elements))));
  }
  shape.rows = (shape.elements + shape.columns - 1) / shape.columns;
  return shape;
}

void check_that_it_saves(const std::string& spec, const MessageMeta& meta, const MatrixShape& shape,
                         size_t bytes) {
  const size_t raw = shape.elements * sizeof(float);
  if (bytes < raw) return;
  throw InputError(
      "codec {} takes a message of shape {} as a matrix of {} rows and {} columns, of which it would send {} "
      "bytes, not fewer than the message's {}",
      spec, shape_text(meta.shape), shape.rows, shape.columns, bytes, raw);
}

float largest_of(std::span<const float> x) {
  const kernels::Range range = kernels::range_of(x);
  const bool is_finite = std::isfinite(range.lo) && std::isfinite(range.hi);
  return is_finite ? std::max(-range.lo, range.hi) : std::numeric_limits<float>::infinity();
}

bool multiply_out(std::span<const float> left, std::span<const float> right, const MatrixShape& shape,
                  std::span<float> out) {
  in_shares(shape.whole_rows(), shape.columns, [&](size_t begin, size_t end) {
    kernels::multiply_factors(left, begin, shape.rows, right, shape.columns,
                              out.subspan(begin * shape.columns, (end - begin) * shape.columns));
  });
  if (const auto rest = out.subspan(shape.whole_rows() * shape.columns); !rest.empty()) {
    thread_local std::vector<float> last;
    last.resize(shape.columns);
    kernels::multiply_factors(left, shape.whole_rows(), shape.rows, right, shape.columns, last);
    std::copy_n(last.begin(), rest.size(), rest.begin());
  }
  return kernels::all_finite(out);
}

void check_products(std::span<const float> left, std::span<const float> right, const MatrixShape& shape) {
  const auto largest = [](std::span<const float> factor, size_t j, size_t length) {
    return static_cast<double>(largest_of(factor.subspan(j * length, length)));
  };
  double sum = 0;
  for (size_t j = 0; j < left.size() / shape.rows; ++j) {
    sum += largest(left, j, shape.rows) * largest(right, j, shape.columns);
  }
  if (!(sum < std::numeric_limits<float>::max() / 2)) {
    throw NumericError("the factors of the message are past float32");
  }
}

}  // namespace strait
