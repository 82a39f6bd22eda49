#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/named_tensors.h"
#include "strait/links/link.h"
#include "strait/train/options.h"

namespace torch::optim {
class Optimizer;
class OptimizerOptions;
class OptimizerParamState;
}  // namespace torch::optim

namespace strait {

/// What an optimizer keeps of a parameter from step to step, as tensors, for checkpoints.
struct OptimizerState {
  std::vector<std::string> names;  ///< PyTorch's

  /// The tensors of LibTorch's state of one parameter, in the order of the names.
  std::function<std::vector<at::Tensor>(const torch::optim::OptimizerParamState&)> take;

  /// The inverse; the tensors are on any device, the state belongs on the parameter's.
  std::function<std::unique_ptr<torch::optim::OptimizerParamState>(const std::vector<at::Tensor>&,
                                                                   const at::Tensor& parameter)>
      make;

  /// Where a parameter is going: the last step changed it by about -rate times this, of its shape; not defined
  /// where the state does not say. Needed only for a schedule that predicts weights.
  std::function<at::Tensor(const torch::optim::OptimizerParamState&, const torch::optim::OptimizerOptions&)>
      direction = {};
};

/// Any of LibTorch's optimizers, or one of a program's own that derives from their class, with the form of its
/// state. All parameters have one learning rate.
class Optimizer {
 public:
  /// `form` is that of the optimizer's class.
  Optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer, OptimizerState form);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// As LibTorch's.
  void zero_grad();

  /// Sets the rate of every parameter.
  void set_learning_rate(double rate);

  /// Changes the parameters by their gradients.
  void step();

  /// Whether predict() knows where the parameters are going.
  bool can_predict() const { return static_cast<bool>(form_.direction); }

  /// The parameters, in their order, as they would be after steps in the last one's direction whose rates add
  /// up to `distance`. Those that have made no step are as they are.
  std::vector<at::Tensor> predict(double distance) const;

  /// The names of what it keeps of a parameter.
  const std::vector<std::string>& state_names() const { return form_.names; }

  /// Walks what it carries from step to step, as `PARAMETER.NAME`. A tensor that a visitor sets is moved to the
  /// parameter's device. Tensors are not defined before the parameter's first step.
  void visit_state(const NamedTensors& parameters, StateVisitor& visitor);

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  OptimizerState form_;
};

/// A kind of optimizer, and which of its options it reads besides lr and weight_decay.
struct OptimizerKind {
  std::string name;  ///< in train.optimizer.kind

  /// Makes one for these parameters.
  std::unique_ptr<Optimizer> (*make)(const OptimizerOptions&, const std::vector<at::Tensor>& parameters);

  OptimizerOptions defaults;  ///< lr and weight_decay where nothing sets them
  bool has_momentum = false;  ///< OptimizerOptions::momentum
  bool has_betas = false;     ///< OptimizerOptions::betas and eps
};

/// The list of them, one entry each (docs/adding_an_optimizer.md). State in checkpoints: of sgd
/// `momentum_buffer`, of adam and adamw `exp_avg` and `exp_avg_sq`, dense float32 of the parameter's shape, and
/// `step`, one int64.
const std::vector<OptimizerKind>& optimizer_kinds();

/// The kind of that name. Throws InputError that lists the names.
const OptimizerKind& optimizer_kind(std::string_view name);

/// One of the kind that the options name, with their hyper-parameters. Throws InputError for another kind.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options,
                                          const std::vector<at::Tensor>& parameters);

}  // namespace strait
