#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

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

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace strait
