#pragma once

#include <cstdint>

#include "strait/kernels/cuda/launch.h"

namespace strait::kernels::cuda {

// The codecs `fp16` and `bf16`, and the lists of values of `topk`: float32 to 2 bytes each and back, as
// kernels/half.h. `in` and `out` are aligned for what they hold, best to 16 bytes.

/// Writes `count` values of this type, fp16 or bf16. Raises kNotSendable where one is not finite or rounds to
/// infinity.
void narrow(const float* x, uint64_t count, ValueType type, void* out, uint32_t* faults, Stream stream);

/// The way back. Raises kNotAMessage where a value is not finite.
void widen(const void* in, uint64_t count, ValueType type, float* out, uint32_t* faults, Stream stream);

}  // namespace strait::kernels::cuda
