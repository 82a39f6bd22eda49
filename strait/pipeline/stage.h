#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>

namespace strait {

/// What the last stage makes of its output and the targets.
struct Loss {
  at::Tensor mean;      ///< scalar, differentiable: the mean over `count`
  int64_t correct = 0;  ///< predictions that were right
  int64_t count = 0;    ///< predictions
};
using LossFunction = std::function<Loss(const at::Tensor& output, const at::Tensor& targets)>;

/// A part of the network between two cuts, with the micro-batches it has under way. Its input is a leaf of
/// the autograd graph, so that graphs never reach over a boundary.
class Stage {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  /// `first`: the input is data and needs no gradient. `loss` is set for the last stage only.
  Stage(Forward forward, LossFunction loss, bool first);

  bool is_last() const { return static_cast<bool>(loss_); }

  /// Runs the stage and keeps what backward() needs. Returns the output without its graph.
  at::Tensor forward(uint32_t micro_batch, const at::Tensor& input);

  /// The last stage's forward(): keeps the loss for backward() and returns its numbers.
  Loss forward_loss(uint32_t micro_batch, const at::Tensor& input, const at::Tensor& targets);

  /// Runs without keeping anything.
  at::Tensor infer(const at::Tensor& input) const;
  Loss infer_loss(const at::Tensor& input, const at::Tensor& targets) const;

  /// Adds to the parameters' gradients and returns the gradient of the stage's input (undefined for the
  /// first stage). `gradient` is that of the output; for the last stage the weight of the micro-batch's
  /// mean loss in the batch's. Releases the micro-batch's graph.
  at::Tensor backward(uint32_t micro_batch, const at::Tensor& gradient);

  /// Micro-batches whose graph is held.
  size_t alive() const { return alive_.size(); }

  /// Forgets all micro-batches; after a step that failed.
  void clear() { alive_.clear(); }

 private:
  struct Graph {
    at::Tensor input;
    at::Tensor output;
  };
  at::Tensor make_leaf(const at::Tensor& input) const;
  void keep(uint32_t micro_batch, at::Tensor input, at::Tensor output);

  Forward forward_;
  LossFunction loss_;
  bool first_;
  std::map<uint32_t, Graph> alive_;
};

}  // namespace strait
