#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "strait/codecs/message.h"
#include "strait/codecs/spec.h"

namespace strait {

// Messages as matrices, sent as two factors: `left` has a vector of MatrixShape::rows elements for each of the
// rank, one vector behind the other, and `right` one of MatrixShape::columns (kernels/lowrank.h).

/// A message as a matrix, row-major, of which the last row may have too few elements; what is missing is 0.
struct MatrixShape {
  size_t elements = 0;  ///< of the message
  size_t rows = 0;      ///< of the matrix
  size_t columns = 0;   ///< of the matrix

  /// Rows that have all their elements.
  size_t whole_rows() const { return elements / columns; }

  /// Bytes of two factors of this rank.
  size_t factor_bytes(size_t rank) const { return rank * (rows + columns) * sizeof(float); }
};

/// How a message becomes a matrix: the last dimension (of four the last two) makes the columns, or the elements
/// as they lie a square, as they do in any case where the matrix would have one row or one column.
enum class MatrixLayout { dimensions, square };

/// The option `matrix`. Throws InputError for another value.
MatrixLayout matrix_layout_from(OperatorSpec& spec);

/// The matrix of a message that is not empty.
MatrixShape matrix_of(const MessageMeta& meta, MatrixLayout layout);

/// Throws InputError where a message of `bytes` is not shorter than its elements; `spec` names the codec.
void check_that_it_saves(const std::string& spec, const MessageMeta& meta, const MatrixShape& shape,
                         size_t bytes);

/// Writes the product of finite factors. False where an element is not finite.
bool multiply_out(std::span<const float> left, std::span<const float> right, const MatrixShape& shape,
                  std::span<float> out);

/// Throws NumericError where an element of the product, or of a factor, could be past half of float32's range.
void check_products(std::span<const float> left, std::span<const float> right, const MatrixShape& shape);

/// Calls work(begin, end) for parts of `count` rows or columns of `size` elements each, which threads share.
template <class Work>
void in_shares(size_t count, size_t size, const Work& work) {
  constexpr size_t kGrain = 1 << 16;  // elements that a thread handles at least
  const auto grain = static_cast<int64_t>(std::max<size_t>(16, kGrain / std::max<size_t>(1, size)));
  at::parallel_for(0, static_cast<int64_t>(count), grain, [&](int64_t begin, int64_t end) {
    work(static_cast<size_t>(begin), static_cast<size_t>(end));
  });
}

/// The largest magnitude; infinity where an element is not finite.
float largest_of(std::span<const float> x);

}  // namespace strait
