#include "strait/train/optimizer.h"

#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "strait/base/error.h"

namespace strait {
namespace {

/// LibTorch 1.13 keys the state by the tensor's address as a stream writes it, later versions by the address.
template <class Key>
Key key_of(const at::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return fmt::format("{}", fmt::ptr(parameter.unsafeGetTensorImpl()));
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

}  // namespace

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

void visit_state(torch::optim::Optimizer& optimizer,
                 const std::vector<std::pair<std::string, at::Tensor>>& parameters, StateVisitor& visitor) {
  auto& all = optimizer.state();
  using Key = std::decay_t<decltype(all)>::key_type;
  for (const auto& [name, parameter] : parameters) {
    const auto found = all.find(key_of<Key>(parameter));
    at::Tensor buffer;
    if (found != all.end()) {
      buffer = static_cast<torch::optim::SGDParamState&>(*found->second).momentum_buffer();
    }
    visitor.tensor(name + ".momentum_buffer", buffer);
    if (!buffer.defined()) continue;
    STRAIT_CHECK(buffer.sizes() == parameter.sizes(), "the momentum of {} has another shape", name);
    auto state = std::make_unique<torch::optim::SGDParamState>();
    state->momentum_buffer(buffer.to(parameter.device()));
    all[key_of<Key>(parameter)] = std::move(state);
  }
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace strait
