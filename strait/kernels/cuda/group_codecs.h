#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/kernels/cuda/coder.h"
#include "strait/kernels/cuda/groups.h"
#include "strait/kernels/cuda/launch.h"
#include "strait/kernels/levels.h"
#include "strait/kernels/quantise.h"

namespace strait::kernels::cuda {

// Codecs that keep something of each group: `quant`, `fp8`, `mx` (docs/wire_format.md). A message is two lists,
// the headers of all groups and the codes of all groups, which stand behind each other there and may stand
// anywhere here: headers of float32 aligned for it; codes at any place, aligned to 8 bytes for the full speed.
// x, `out` and the state hold layout.elements() floats, best aligned to 16 bytes. With scope=channel the
// elements are brought into the groups' order before and out of it after.
//
// The bytes are those of the CPU's codecs. Encoders raise kNotSendable for a group with an element that is not
// finite or whose decoded elements would not be; decoders raise kNotAMessage where the CPU's throw WireError.

/// A state of feedback, updated in place, of the same size and order as x.
struct FeedbackState {
  Feedback kind = Feedback::none;  ///< what is encoded, and how the state moves
  float* state = nullptr;          ///< null without feedback
};

/// What `quant` with levels=range sends.
struct QuantForm {
  uint32_t bits = 0;                   ///< of a code, 1 to 8
  RangeType ranges = RangeType::fp32;  ///< of the headers, 8 bytes a group, or 4 with bf16
};

/// Bytes of the workspace of encode_quant() and encode_symmetric(): 0 for groups of up to 256 elements, which
/// are read once, else 8 a group.
size_t quant_workspace(const Layout& layout);

/// `quant` with levels=range. `ranges` gets the headers, `codes` layout.code_bytes(form.bits); `workspace` is
/// aligned to 4 bytes. The dither's first_index is the place in the batch of x[0]. Raises kPastFloat where a
/// state is no longer finite.
void encode_quant(const float* x, FeedbackState feedback, const Layout& layout, QuantForm form,
                  Rounding rounding, void* ranges, void* codes, void* workspace, uint32_t* faults,
                  Stream stream);

/// Decodes what encode_quant() writes. With `add` the values are added to `out` (the estimate of ef21), and
/// kPastFloat is raised where a sum is not finite.
void decode_quant(const void* ranges, const void* codes, const Layout& layout, QuantForm form, bool add,
                  float* out, uint32_t* faults, Stream stream);

/// `quant` with levels=symmetric, 2 <= bits <= 8. `scales` gets 4 bytes a group; the rest as for
/// encode_quant().
void encode_symmetric(const float* x, const Layout& layout, uint32_t bits, Rounding rounding, void* scales,
                      void* codes, void* workspace, uint32_t* faults, Stream stream);

/// Decodes what encode_symmetric() writes.
void decode_symmetric(const void* scales, const void* codes, const Layout& layout, uint32_t bits, float* out,
                      uint32_t* faults, Stream stream);

/// `fp8`: codes of `format` over a scale, 4 bytes a group of up to 256 elements.
void encode_fp8(const float* x, const Layout& layout, SmallFloat format, void* scales, void* codes,
                uint32_t* faults, Stream stream);

/// Decodes what encode_fp8() writes.
void decode_fp8(const void* scales, const void* codes, const Layout& layout, SmallFloat format, float* out,
                uint32_t* faults, Stream stream);

/// `mx` with a floating-point format: codes over a power of two, a byte a group of up to 256 elements.
void encode_mx(const float* x, const Layout& layout, SmallFloat format, void* exponents, void* codes,
               uint32_t* faults, Stream stream);

/// Decodes what encode_mx() writes.
void decode_mx(const void* exponents, const void* codes, const Layout& layout, SmallFloat format, float* out,
               uint32_t* faults, Stream stream);

/// `mx:int8`.
void encode_mx_integers(const float* x, const Layout& layout, void* exponents, void* codes, uint32_t* faults,
                        Stream stream);

/// Decodes what encode_mx_integers() writes.
void decode_mx_integers(const void* exponents, const void* codes, const Layout& layout, float* out,
                        uint32_t* faults, Stream stream);

}  // namespace strait::kernels::cuda
