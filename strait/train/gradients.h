#pragma once

#include <vector>

#include "strait/models/model.h"
#include "strait/pipeline/gradient_norm.h"
#include "strait/transport/group.h"

namespace strait {

/// What happens to the gradients between the backward pass and the optimizer's step, over the stages of all
/// processes, with the same bits however many processes there are. Collective.
class Gradients {
 public:
  /// `rank_of_stage` says which process has which stage. The group must outlive it. Makes both parameters of
  /// every tie equal.
  Gradients(const Model& model, const std::vector<LayerRange>& stages, const std::vector<int>& rank_of_stage,
            Group& group);

  /// Gives both parameters of each tie the sum of their gradients. They started equal, so equal steps keep them
  /// so.
  void sum_ties();

  /// Scales all gradients so that their 2-norm over the whole network is at most `limit`, as PyTorch's
  /// clip_grad_norm_; a tie counts once, and a parameter without a gradient not at all. Throws NumericError
  /// when the norm is not finite.
  void clip(double limit);

 private:
  struct Tie {
    at::Tensor first;  ///< defined where they are in this process
    at::Tensor second;
    int first_rank = 0;
    int second_rank = 0;
    std::string name;
  };

  Group& group_;
  size_t stage_count_;
  std::vector<StageParameter> counted_;  ///< parameters of this process but for seconds of a tie
  std::vector<at::Tensor> own_;          ///< all of this process
  std::vector<Tie> ties_;
};

}  // namespace strait
