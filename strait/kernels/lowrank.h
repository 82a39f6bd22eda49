#pragma once

#include <cstddef>
#include <span>

namespace strait::kernels {

/// Rows of a matrix, one behind the other.
struct MatrixRows {
  std::span<const float> elements;  ///< row-major
  size_t columns = 0;               ///< elements of a row

  /// Rows of the matrix.
  size_t rows() const { return elements.size() / columns; }
};

// Factors are lists of `rank` vectors, one behind the other. All sums are float32 in one order, rounded after
// every operation, on every machine.

/// Writes the products of the rows with the vectors of `right`, of m.columns elements each, to places `first`
/// and following of the vectors of `left`, of `length` elements each. A product is summed in 16 lanes: term k
/// goes to lane k % 16, which begins at 0, in the order of k; then lanes are added neighbour to neighbour.
void multiply(const MatrixRows& m, std::span<const float> right, size_t first, size_t length,
              std::span<float> left);

/// Adds to each vector of `right` the rows times the elements `first` and following of the vector of `left`,
/// row by row. Only columns from `begin` to `end`, which is excluded.
void add_transposed(const MatrixRows& m, std::span<const float> left, size_t first, size_t length, size_t begin,
                    size_t end, std::span<float> right);

/// Makes the vectors of `length` elements orthonormal, by modified Gram-Schmidt in two passes: twice for each
/// vector, its product with every one before, in the order of multiply(), times that one is taken off; then it
/// is divided by its norm. A vector becomes 0 of which the first pass leaves 2^-16 of its norm or less, and
/// which hence lies in the span of those before but for rounding.
void orthonormalise(size_t length, std::span<float> vectors);

/// Writes the sums over the vectors, in their order and from 0 on, of the elements `first` and following of
/// `left` times the vector of `right`: as many rows of `columns` elements as there is room for in `out`.
void multiply_factors(std::span<const float> left, size_t first, size_t length, std::span<const float> right,
                      size_t columns, std::span<float> out);

}  // namespace strait::kernels
