#include "strait/train/optimizer.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "strait/base/error.h"

namespace strait {

double learning_rate(const ScheduleOptions& schedule, double base, int epoch) {
  if (schedule.kind == "constant") return base;
  STRAIT_CHECK(schedule.kind == "cosine", "schedule {}", schedule.kind);
  return base * (1 + std::cos(std::numbers::pi * epoch / schedule.t_max)) / 2;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        const std::vector<at::Tensor>& parameters) {
  STRAIT_CHECK(options.kind == "sgd", "optimizer {}", options.kind);
  return std::make_unique<torch::optim::SGD>(
      parameters,
      torch::optim::SGDOptions(options.lr).momentum(options.momentum).weight_decay(options.weight_decay));
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace strait
