#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "strait/codecs/message.h"

namespace strait::python {

/// The tensor as codecs take it, float32 and without its graph. Throws WrongType that begins with `what` for a
/// type whose values are not float32 values, and for a layout without strides.
at::Tensor as_message(const at::Tensor& x, std::string_view what);

/// What a receiver sees, in a type that as_message() takes. Throws NumericError that begins with `what` where a
/// value is past the type's range.
at::Tensor narrowed(const at::Tensor& received, at::ScalarType type, std::string_view what);

/// What a message of that shape is. Throws InputError for one that no tensor can have.
MessageMeta meta_of_shape(at::IntArrayRef shape);

}  // namespace strait::python
