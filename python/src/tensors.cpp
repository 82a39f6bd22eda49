#include "python/src/tensors.h"

#include <ATen/core/ivalue.h>

#include "python/src/errors.h"
#include "strait/base/text.h"
#include "strait/pipeline/half_range.h"

namespace strait::python {

at::Tensor as_message(const at::Tensor& x, std::string_view what) {
  if (x.layout() != at::kStrided) {
    throw WrongType("{}: expected a dense tensor, found another layout", what);
  }
  switch (x.scalar_type()) {
    case at::kFloat:
    case at::kHalf:
    case at::kBFloat16:
      return x.detach().resolve_neg().to(at::kFloat);
    default:
      throw WrongType("{}: expected a tensor of float32, float16 or bfloat16, found {}", what,
                      c10::toString(x.scalar_type()));
  }
}

at::Tensor narrowed(const at::Tensor& received, at::ScalarType type, std::string_view what) {
  at::Tensor narrow = received.to(type);
  expect_in_range(narrow, what);
  return narrow;
}

MessageMeta meta_of_shape(at::IntArrayRef shape) {
  constexpr size_t kMost = SIZE_MAX / 64;  // elements: the bits of a payload can be counted
  size_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(elements, static_cast<size_t>(size), &elements) ||
        elements > kMost) {
      throw InputError("shape: expected the shape of a tensor, found {}", shape_text(shape));
    }
  }
  return {shape.vec()};
}

}  // namespace strait::python
