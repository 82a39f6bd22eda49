#include "strait/train/optimizer.h"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
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

using ParamState = torch::optim::OptimizerParamState;

/// What a kind of optimizer keeps of a parameter, as tensors.
struct StateForm {
  std::vector<std::string> names;
  std::vector<at::Tensor> (*take)(const ParamState& state);
  std::unique_ptr<ParamState> (*make)(const std::vector<at::Tensor>& tensors, const at::Tensor& parameter);
};

at::Tensor like(const at::Tensor& tensor, const at::Tensor& parameter) {
  STRAIT_CHECK(tensor.defined() && tensor.sizes() == parameter.sizes(),
               "the optimizer's state of a parameter has another shape");
  return tensor.to(parameter.device());
}

const StateForm kSgd = {.names = {"momentum_buffer"},
                        .take = [](const ParamState& state) -> std::vector<at::Tensor> {
                          return {static_cast<const torch::optim::SGDParamState&>(state).momentum_buffer()};
                        },
                        .make = [](const std::vector<at::Tensor>& tensors,
                                   const at::Tensor& parameter) -> std::unique_ptr<ParamState> {
                          auto state = std::make_unique<torch::optim::SGDParamState>();
                          state->momentum_buffer(like(tensors[0], parameter));
                          return state;
                        }};

const StateForm kAdamW = {
    .names = {"exp_avg", "exp_avg_sq", "step"},
    .take = [](const ParamState& state) -> std::vector<at::Tensor> {
      const auto& adamw = static_cast<const torch::optim::AdamWParamState&>(state);
      return {adamw.exp_avg(), adamw.exp_avg_sq(), at::scalar_tensor(adamw.step(), at::kLong)};
    },
    .make = [](const std::vector<at::Tensor>& tensors,
               const at::Tensor& parameter) -> std::unique_ptr<ParamState> {
      auto state = std::make_unique<torch::optim::AdamWParamState>();
      state->exp_avg(like(tensors[0], parameter));
      state->exp_avg_sq(like(tensors[1], parameter));
      STRAIT_CHECK(tensors[2].defined() && tensors[2].numel() == 1,
                   "the optimizer's count of steps is missing");
      state->step(tensors[2].item<int64_t>());
      return state;
    }};

const StateForm& form_of(const torch::optim::Optimizer& optimizer) {
  return dynamic_cast<const torch::optim::AdamW*>(&optimizer) == nullptr ? kSgd : kAdamW;
}

double linear_share(int64_t warmup, int64_t step, int64_t all) {
  if (step < warmup) return static_cast<double>(step) / static_cast<double>(warmup);
  const int64_t left = std::max<int64_t>(all - step, 0);
  return static_cast<double>(left) / static_cast<double>(std::max<int64_t>(all - warmup, 1));
}

}  // namespace

double learning_rate(const ScheduleOptions& schedule, double base, const SchedulePoint& at) {
  if (schedule.kind == "constant") return base;
  if (schedule.kind == "linear") return base * linear_share(schedule.warmup_steps, at.step, at.all_steps);
  STRAIT_CHECK(schedule.kind == "cosine", "schedule {}", schedule.kind);
  return base * (1 + std::cos(std::numbers::pi * at.epoch / schedule.t_max)) / 2;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& options,
                                                        const std::vector<at::Tensor>& parameters) {
  if (options.kind == "adamw") {
    return std::make_unique<torch::optim::AdamW>(parameters,
                                                 torch::optim::AdamWOptions(options.lr)
                                                     .betas({options.betas.at(0), options.betas.at(1)})
                                                     .eps(options.eps)
                                                     .weight_decay(options.weight_decay));
  }
  STRAIT_CHECK(options.kind == "sgd", "optimizer {}", options.kind);
  return std::make_unique<torch::optim::SGD>(
      parameters,
      torch::optim::SGDOptions(options.lr).momentum(options.momentum).weight_decay(options.weight_decay));
}

const std::vector<std::string>& state_names(const torch::optim::Optimizer& optimizer) {
  return form_of(optimizer).names;
}

void visit_state(torch::optim::Optimizer& optimizer,
                 const std::vector<std::pair<std::string, at::Tensor>>& parameters, StateVisitor& visitor) {
  const StateForm& form = form_of(optimizer);
  auto& all = optimizer.state();
  using Key = std::decay_t<decltype(all)>::key_type;
  for (const auto& [name, parameter] : parameters) {
    const auto found = all.find(key_of<Key>(parameter));
    auto tensors = found == all.end() ? std::vector<at::Tensor>(form.names.size()) : form.take(*found->second);
    for (size_t i = 0; i < tensors.size(); ++i) visitor.tensor(name + "." + form.names[i], tensors[i]);
    if (tensors.front().defined()) all[key_of<Key>(parameter)] = form.make(tensors, parameter);
  }
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

}  // namespace strait
