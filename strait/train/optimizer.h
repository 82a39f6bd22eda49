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

/// The learning rate of an epoch (from 0), as PyTorch's schedulers stepped once an epoch give it:
/// cosine is lr * (1 + cos(pi * epoch / t_max)) / 2.
double learning_rate(const ScheduleOptions& schedule, double base, int epoch);

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        const std::vector<at::Tensor>& parameters);

/// Walks what the optimizer carries from step to step, as `PARAMETER.momentum_buffer`, dense float32 of the
/// parameter's shape; a tensor that a visitor sets is moved to the parameter's device. A buffer is not
/// defined before the parameter's first step.
void visit_state(torch::optim::Optimizer& optimizer,
                 const std::vector<std::pair<std::string, at::Tensor>>& parameters, StateVisitor& visitor);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace strait
