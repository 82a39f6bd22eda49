#pragma once

#include <cstddef>
#include <cstdint>

#include "strait/kernels/cuda/group_codecs.h"
#include "strait/kernels/cuda/launch.h"

namespace strait::kernels::cuda {

// Index sets as bitmaps, and values (docs/wire_format.md). A message's parts are lists of their own here,
// because values that stand behind a bitmap in a message need not be aligned, which the device's stores ask
// for; the caller puts them behind each other when it copies them. The codes and lengths of the index sets are
// known without looking at x.

/// `rows` groups of n elements, of which each keeps k. Requires 1 <= k < n < 2^31.
struct SparseRows {
  uint64_t rows = 0;  ///< groups
  uint64_t n = 0;     ///< elements of a group
  uint64_t k = 0;     ///< of them kept

  /// Bytes of a group's bitmap.
  constexpr uint64_t bitmap_bytes() const { return (n + 7) / 8; }
  /// Bytes of what write_largest() works in.
  size_t select_workspace() const;
  /// Bytes of what read_sparse() works in.
  size_t read_workspace() const;
};

/// Marks the k elements of largest magnitude of each group in `bitmaps`, rows * bitmap_bytes(), and writes them
/// in the order of their index to `values`, rows * k of this type, as kernels::select_largest() keeps them.
/// With feedback the state, of the size of x, is updated in place; with ef21 `terms` gets the differences, of
/// the size of x too, and is null otherwise. `workspace` is aligned to 8 bytes, and values to what they hold.
/// Raises kNotSendable where a kept value, and so any, cannot be sent, and kPastFloat where an estimate is no
/// longer finite.
void write_largest(const float* x, FeedbackState feedback, float* terms, const SparseRows& shape,
                   ValueType type, uint8_t* bitmaps, void* values, void* workspace, uint32_t* faults,
                   Stream stream);

/// How values come to their places.
enum class Placing : uint8_t {
  scatter,  ///< the other elements become +0
  add,      ///< to what is there; the others stay (the estimate of ef21)
};

/// Puts the values of each group to the positions of its bitmap in `out`, rows * n. Raises kNotAMessage where a
/// bitmap has not exactly k ones, all below n, or a value is not finite, and kPastFloat where a sum is not.
void read_sparse(const uint8_t* bitmaps, const void* values, ValueType type, const SparseRows& shape,
                 Placing placing, float* out, void* workspace, uint32_t* faults, Stream stream);

}  // namespace strait::kernels::cuda
