#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/cuda/device.h"

namespace strait::bench {

/// A tensor of `rows` rows of `row_size` elements.
struct Shape {
  uint64_t rows = 0;      ///< samples
  uint64_t row_size = 0;  ///< elements of a sample
  /// Elements.
  uint64_t elements() const { return rows * row_size; }
};

/// A kernel, or several that are launched together, over one tensor.
struct Operation {
  std::string name;              ///< as the codec's
  std::function<void()> launch;  ///< enqueues it on the default stream
  std::function<bool()> check;   ///< whether one launch gives what the arithmetic on the host gives
  bool is_timed = true;          ///< or only checked
};

/// Encoders and decoders of `quant`, `fp8` and `mx`.
std::vector<Operation> group_operations(const Shape& shape, const std::vector<float>& x);

/// `topk`, its decoder and its feedback.
std::vector<Operation> sparse_operations(const Shape& shape, const std::vector<float>& x);

/// `fp16` and `bf16`.
std::vector<Operation> cast_operations(const Shape& shape, const std::vector<float>& x);

}  // namespace strait::bench
