#pragma once

#include <cstddef>
#include <cstdint>

// What all launchers of this folder have in common. They enqueue kernels on a stream and return; pointers are
// to memory of the device, and what they read and write must live until the stream has passed. Headers here
// need nothing of CUDA.
//
// A launcher throws std::runtime_error where CUDA refuses the launch, and nothing else: what is wrong with the
// data is told by a word in device memory, which the caller clears before and reads after.

namespace strait::kernels::cuda {

/// A stream of CUDA (cudaStream_t); null is the default stream.
struct Stream {
  void* handle = nullptr;  ///< a cudaStream_t
};

// Bits that kernels set in the word `faults` of device memory. After one, what was written is undefined, and so
// is a state of feedback.

/// An encoder met a value that is not finite or past what the format holds.
inline constexpr uint32_t kNotSendable = 1;

/// A decoder met bytes that no encoder writes.
inline constexpr uint32_t kNotAMessage = 2;

/// A state of feedback is no longer finite.
inline constexpr uint32_t kPastFloat = 4;

/// How a list of values is written: 4 bytes each, or 2 as by kernels/half.h.
enum class ValueType : uint8_t { fp32, fp16, bf16 };

/// Bytes of a value.
constexpr size_t value_size(ValueType type) { return type == ValueType::fp32 ? 4 : 2; }

/// Feedback around an encoder, in its own passes. `ef`: encodes x + state, and what the receiver does not see
/// of that becomes the state. `ef21`: encodes x - state, and the state moves by what the receiver sees.
enum class Feedback : uint8_t { none, ef, ef21 };

}  // namespace strait::kernels::cuda
