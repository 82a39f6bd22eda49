#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strait/links/link.h"
#include "strait/train/options.h"

namespace torch::optim {
class Optimizer;
}

namespace strait {

/// Where a training stands, in what schedules count.
struct SchedulePoint {
  int epoch = 0;          ///< from 0
  int64_t step = 0;       ///< optimizer steps taken
  int64_t all_steps = 0;  ///< of the whole training, for the schedule "linear"
};

/// The learning rate of the step that comes next. Cosine is lr * (1 + cos(pi * epoch / t_max)) / 2, as
/// PyTorch's scheduler stepped once per epoch gives it. Linear is Hugging Face's
/// get_linear_schedule_with_warmup: it rises from 0 to lr over warmup_steps, which are no more than all steps,
/// and then falls to 0, where it would be after the last step.
double learning_rate(const ScheduleOptions& schedule, double base, const SchedulePoint& at);

/// torch::optim::SGD or AdamW over these parameters, with the options' hyper-parameters.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        const std::vector<at::Tensor>& parameters);

/// The names of what the optimizer keeps of a parameter.
const std::vector<std::string>& state_names(const torch::optim::Optimizer& optimizer);

/// Walks what the optimizer carries from step to step, as `PARAMETER.NAME`. Of sgd that is `momentum_buffer`,
/// of adamw `exp_avg` and `exp_avg_sq`, dense float32 of the parameter's shape, and `step`, one int64. A tensor
/// that a visitor sets is moved to the parameter's device. Tensors are not defined before the parameter's first
/// step.
void visit_state(torch::optim::Optimizer& optimizer,
                 const std::vector<std::pair<std::string, at::Tensor>>& parameters, StateVisitor& visitor);

/// Sets the rate of every parameter group.
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace strait
