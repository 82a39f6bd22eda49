#pragma once

#include <functional>

namespace strait {

/// What changes the weights of a stage between the passes of its micro-batches, for a schedule with
/// steps_per_micro_batch(). Each stage's passes of either kind come in the order of the micro-batches.
class WeightSteps {
 public:
  virtual ~WeightSteps() = default;

  /// Runs the stage's forward pass of its next micro-batch with the weights that it is to have.
  virtual void forward(int stage, const std::function<void()>& pass) = 0;

  /// Runs the stage's backward pass of its oldest micro-batch, which adds to the gradients, with the weights
  /// that it is to have; then the optimizer steps.
  virtual void backward(int stage, const std::function<void()>& pass) = 0;
};

}  // namespace strait
