#pragma once

#include "strait/kernels/cuda/launch.h"

namespace strait::kernels::cuda {

/// What is encoded of an element.
template <Feedback feedback>
constexpr float term_of(float x, float state) {
  if constexpr (feedback == Feedback::ef) return x + state;
  if constexpr (feedback == Feedback::ef21) return x - state;
  return x;
}

/// The state behind an element of which `term` was encoded and the receiver sees `received`.
template <Feedback feedback>
constexpr float state_after(float term, float received, float state) {
  static_assert(feedback != Feedback::none);
  return feedback == Feedback::ef ? term - received : state + received;
}

}  // namespace strait::kernels::cuda
