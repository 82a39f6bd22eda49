#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/device.h"

namespace strait::cuda_check {

/// A tensor of `rows` rows of `row_size` elements.
struct Shape {
  uint64_t rows = 0;      ///< samples
  uint64_t row_size = 0;  ///< elements of a sample
  /// Elements.
  uint64_t elements() const { return rows * row_size; }
};

/// A tensor and a state of feedback, on the host and on the device, and what operations over it share there. A
/// check sets what it needs of the latter and leaves the tensor as it was.
struct Tensor {
  /// Of these elements.
  Tensor(const Shape& of, std::vector<float> elements)
      : shape(of),
        x(std::move(elements)),
        state(x.rbegin(), x.rend()),
        device_x(x),
        device_state(state),
        terms(x.size()),
        out(x.size()),
        faults(std::vector<uint32_t>(1)) {}

  Shape shape;
  std::vector<float> x;
  std::vector<float> state;
  DeviceArray<float> device_x;
  DeviceArray<float> device_state;
  DeviceArray<float> terms;  ///< for write_largest()
  DeviceArray<float> out;
  DeviceArray<uint32_t> faults;
};

/// Operations keep their tensor.
using SharedTensor = std::shared_ptr<Tensor>;

/// A kernel, or several that are launched together, over one tensor.
struct Operation {
  std::string name;              ///< as the codec's
  std::function<void()> launch;  ///< enqueues it on the default stream
  std::function<bool()> check;  ///< whether one launch gives what the arithmetic on the host gives; a decoder's
                                ///< after that of its encoder, whose message it reads
  bool is_timed = true;         ///< or only checked
};

/// Encoders and decoders of `quant`, `fp8` and `mx`.
std::vector<Operation> group_operations(const SharedTensor& tensor);

/// `topk`, its decoder and its feedback.
std::vector<Operation> sparse_operations(const SharedTensor& tensor);

/// `fp16` and `bf16`.
std::vector<Operation> cast_operations(const SharedTensor& tensor);

}  // namespace strait::cuda_check
