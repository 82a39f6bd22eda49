#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "strait/links/link.h"
#include "strait/models/model.h"
#include "strait/train/side_pass.h"

namespace strait {

/// The weights that the step before began with, and the gradients that the batches of this step have at them,
/// for replicas whose messages need these (Link::needs_previous()).
class PreviousWeights {
 public:
  /// Of the layers of this process's stages. There are no such weights yet.
  explicit PreviousWeights(const Model& own);

  /// Forgets the gradients; before the step's first batch.
  void begin() { gradients_.clear(); }

  /// Runs `pass`, which adds a batch's gradients, at those weights, which must be there, and keeps what it
  /// adds. Afterwards the parameters have their values again, and all else is as SidePass::run() leaves it.
  void run(const std::function<void()>& pass);

  /// What run() has added up since begin(), in the order of the parameters; empty where it was not called.
  std::span<const at::Tensor> gradients() const { return gradients_; }

  /// The weights as they are will be those of the step before; at the step's end, before they change.
  void keep();

  /// Such weights are not there any more.
  void drop() { weights_.assign(side_pass_.parameters().size(), {}); }

  /// Shows the weights, under the parameters' names.
  void visit_state(StateVisitor& visitor);

 private:
  SidePass side_pass_;
  std::vector<at::Tensor> weights_;    ///< before, by parameter; not defined where there are none
  std::vector<at::Tensor> gradients_;  ///< at these, likewise
};

}  // namespace strait
