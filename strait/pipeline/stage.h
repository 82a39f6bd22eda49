#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace strait {

/// What the last stage makes of its output and the targets.
struct Loss {
  at::Tensor mean;      ///< scalar, differentiable: the mean over `count`
  int64_t correct = 0;  ///< predictions that were right
  int64_t count = 0;    ///< predictions
};

/// Makes the loss of an output [B, ...] and its targets [B, ...]. Throws what the loss throws.
using LossFunction = std::function<Loss(const at::Tensor& output, const at::Tensor& targets)>;

/// What enters or leaves a stage: mostly one tensor. The first dimension of each is the rows of the
/// micro-batch. Integers among them are data, which have no gradient, and so may be others
/// (Stage::set_gradients()). What a Stage returns is contiguous.
using TensorList = std::vector<at::Tensor>;

/// The stage's part of the network: what it gives for what crosses to it, and what every stage is given beside.
using StageForward = std::function<TensorList(const TensorList&)>;

/// Makes the loss of the last stage's outputs and the targets.
using StageLoss = std::function<Loss(const TensorList& output, const at::Tensor& targets)>;

/// A part of the network between two cuts, with the micro-batches it has under way. Its inputs are leaves of
/// the autograd graph, so that graphs never reach over a boundary.
class Stage {
 public:
  /// The stage's part of the network: the output [B, ...] for an input [B, ...].
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  /// `first`: the input is data and needs no gradient. `loss` is set for the last stage only.
  Stage(StageForward forward, StageLoss loss, bool first);

  /// With a loss of one tensor.
  Stage(StageForward forward, LossFunction loss, bool first);

  /// One tensor in, one tensor out.
  Stage(Forward forward, LossFunction loss, bool first);

  /// Says which inputs and which outputs have a gradient from now on, those of floating-point numbers among
  /// them; unless it does, all of these have one. The first stage's inputs and the last one's outputs do not
  /// count. Not while micro-batches are under way.
  void set_gradients(std::vector<bool> of_inputs, std::vector<bool> of_outputs);

  /// Whether the stage has the loss.
  bool is_last() const { return static_cast<bool>(loss_); }

  /// Runs the stage and keeps what backward() needs. Returns the output without its graph. The stage gets
  /// `extras`, which have no gradient, behind the input.
  TensorList forward(uint32_t micro_batch, const TensorList& input, const TensorList& extras = {});

  /// The last stage's forward(): keeps the loss for backward() and returns its numbers. Throws InputError for a
  /// loss that is no scalar, or that has no gradient although it counts something and the outputs have one.
  Loss forward_loss(uint32_t micro_batch, const TensorList& input, const at::Tensor& targets,
                    const TensorList& extras = {});

  /// Runs without keeping anything.
  TensorList infer(const TensorList& input, const TensorList& extras = {}) const;

  /// The last stage's infer().
  Loss infer_loss(const TensorList& input, const at::Tensor& targets, const TensorList& extras = {}) const;

  /// Adds to the parameters' gradients and returns the gradients of those of the stage's inputs that have one
  /// (zeros for an input that the output does not depend on). `gradients` are those of the outputs that have
  /// one; for the last stage the weight of the micro-batch's mean loss in the batch's.
  /// Releases the micro-batch's graph.
  TensorList backward(uint32_t micro_batch, const TensorList& gradients);

  /// Micro-batches whose graph is held.
  size_t alive() const { return alive_.size(); }

  /// Forgets all micro-batches; after a step that failed.
  void clear() { alive_.clear(); }

 private:
  struct Graph {  // of what has a gradient
    TensorList inputs;
    TensorList outputs;
  };
  bool input_has_gradient(const TensorList& input, size_t i) const;
  TensorList make_leaves(const TensorList& input) const;
  void keep(uint32_t micro_batch, const TensorList& leaves, TensorList outputs);

  StageForward forward_;
  StageLoss loss_;
  bool first_;
  std::vector<bool> gradients_of_inputs_;  // empty: set_gradients() was not called; so of the outputs
  std::vector<bool> gradients_of_outputs_;
  std::map<uint32_t, Graph> alive_;
};

}  // namespace strait
