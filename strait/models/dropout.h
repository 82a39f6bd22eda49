#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "strait/base/rng_scope.h"

namespace strait {

/// The draws of one dropout in one forward pass. They belong to elements and not to the order in which they are
/// asked for, so that a part of a mask can be made by itself, and again.
struct DropoutRng {
  RngKey key;              ///< of the forward pass
  double probability = 0;  ///< below 1
  uint64_t place = 0;      ///< tells apart the dropouts of a network

  /// The factors of the elements [begin, begin + factors.size()) of the input's sample `row`, in row-major
  /// order: 0 for those that go, 1 / (1 - probability) for the others.
  void fill(int64_t row, int64_t begin, std::span<float> factors) const;

  /// The same factors of the elements that stand at `index`, int64, in each of the first `rows` samples:
  /// float32 [rows, as index], made on the device of `index`.
  at::Tensor factors_at(int64_t rows, const at::Tensor& index) const;

  /// Of the sample's draws.
  uint64_t key_of(int64_t row) const;
};

/// Sets each element of x, [rows, ...], to zero with the given probability, below 1, and scales the others by
/// 1 / (1 - probability), so that the mean stays. Which elements go is a function of the place, the element and
/// the current RngKey, as DropoutRng says: the same on every device, in every micro-batch and process.
at::Tensor dropout(const at::Tensor& x, double probability, uint64_t place);

}  // namespace strait
