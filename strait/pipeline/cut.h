#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "strait/pipeline/stage.h"

namespace strait {

/// A tensor that crosses a cut.
struct CutTensor {
  std::vector<int64_t> shape;        ///< of one sample, without the batch dimension
  at::ScalarType type = at::kFloat;  ///< in which one stage gives it and the next one takes it
  bool has_gradient = true;  ///< whether a gradient comes back: it depends on a parameter that is trained

  /// Whether it crosses as int64, and has no gradient; else it crosses as float32.
  bool is_integer() const { return at::isIntegralType(type, true); }

  bool operator==(const CutTensor&) const = default;
};

/// Of each cut what crosses it, in the order of the stages.
using Cuts = std::vector<std::vector<CutTensor>>;

/// A stage between two cuts (null: there is none on that side), which gives what the transport takes and takes
/// what it gives. Where the first batch had a half, a float32 would lose digits at the next stage. Throws
/// InputError for a tensor that is not as `below` says. Both must outlive it; what they say of gradients may
/// change.
StageForward between_cuts(StageForward forward, int stage, const std::vector<CutTensor>* above,
                          const std::vector<CutTensor>* below);

}  // namespace strait
