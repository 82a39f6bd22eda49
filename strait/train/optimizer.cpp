#include "strait/train/optimizer.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>

#include "strait/base/error.h"
#include "strait/base/kinds.h"

namespace strait {
namespace {

using ParamState = torch::optim::OptimizerParamState;
using Options = torch::optim::OptimizerOptions;
using Tensors = std::vector<at::Tensor>;

/// LibTorch 1.13 keys the state by the tensor's address as a stream writes it, later versions by the address.
template <class Key>
Key key_of(const at::Tensor& parameter) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return fmt::format("{}", fmt::ptr(parameter.unsafeGetTensorImpl()));
  } else {
    return parameter.unsafeGetTensorImpl();
  }
}

at::Tensor like(const at::Tensor& tensor, const at::Tensor& parameter) {
  STRAIT_CHECK(tensor.defined() && tensor.sizes() == parameter.sizes(),
               "the optimizer's state of a parameter has another shape");
  return tensor.to(parameter.device());
}

OptimizerState state_of_sgd() {
  return {.names = {"momentum_buffer"},
          .take = [](const ParamState& state) -> Tensors {
            return {static_cast<const torch::optim::SGDParamState&>(state).momentum_buffer()};
          },
          .make = [](const Tensors& tensors, const at::Tensor& parameter) -> std::unique_ptr<ParamState> {
            auto state = std::make_unique<torch::optim::SGDParamState>();
            state->momentum_buffer(like(tensors[0], parameter));
            return state;
          },
          .direction =
              [](const ParamState& state, const Options& /*options*/) {
                return static_cast<const torch::optim::SGDParamState&>(state).momentum_buffer();
              }};
}

/// Adam's direction without weight decay: the mean over the root of the mean of squares, both corrected for
/// their beginning at zero (Kingma and Ba 2015, algorithm 1).
template <class State, class Own>
at::Tensor direction_of_means(const ParamState& state, const Options& options) {
  const auto& means = static_cast<const State&>(state);
  const auto& own = static_cast<const Own&>(options);
  const auto steps = static_cast<double>(means.step());
  const double missing = 1 - std::pow(std::get<0>(own.betas()), steps);
  const double missing_sq = 1 - std::pow(std::get<1>(own.betas()), steps);
  const at::Tensor root = (means.exp_avg_sq().sqrt() / std::sqrt(missing_sq)).add_(own.eps());
  return means.exp_avg() / root / missing;
}

/// The running means of gradients and of their squares; `State` is LibTorch's class for them, `Own` that of the
/// optimizer's options.
template <class State, class Own>
OptimizerState state_of_means() {
  return {.names = {"exp_avg", "exp_avg_sq", "step"},
          .take = [](const ParamState& state) -> Tensors {
            const auto& means = static_cast<const State&>(state);
            return {means.exp_avg(), means.exp_avg_sq(), at::scalar_tensor(means.step(), at::kLong)};
          },
          .make = [](const Tensors& tensors, const at::Tensor& parameter) -> std::unique_ptr<ParamState> {
            auto state = std::make_unique<State>();
            state->exp_avg(like(tensors[0], parameter));
            state->exp_avg_sq(like(tensors[1], parameter));
            STRAIT_CHECK(tensors[2].defined() && tensors[2].numel() == 1,
                         "the optimizer's count of steps is missing");
            state->step(tensors[2].item<int64_t>());
            return state;
          },
          .direction = direction_of_means<State, Own>};
}

std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options, const Tensors& parameters) {
  auto own = torch::optim::SGDOptions(options.lr).momentum(options.momentum).weight_decay(options.weight_decay);
  return std::make_unique<Optimizer>(std::make_unique<torch::optim::SGD>(parameters, own), state_of_sgd());
}

/// Adam and AdamW differ in what weight_decay is: part of the gradient, or apart from it.
template <class Algorithm, class Own, class State>
std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& options, const Tensors& parameters) {
  auto own = Own(options.lr)
                 .betas({options.betas.at(0), options.betas.at(1)})
                 .eps(options.eps)
                 .weight_decay(options.weight_decay);
  return std::make_unique<Optimizer>(std::make_unique<Algorithm>(parameters, own),
                                     state_of_means<State, Own>());
}

}  // namespace

const std::vector<OptimizerKind>& optimizer_kinds() {
  namespace optim = torch::optim;
  static const std::vector<OptimizerKind> kKinds = {
      {.name = "sgd", .make = make_sgd, .defaults = {}, .has_momentum = true},
      {.name = "adamw",
       .make = make_adam<optim::AdamW, optim::AdamWOptions, optim::AdamWParamState>,
       .defaults = {.lr = 5e-5, .weight_decay = 0},
       .has_betas = true},
      {.name = "adam",
       .make = make_adam<optim::Adam, optim::AdamOptions, optim::AdamParamState>,
       .defaults = {.lr = 1e-3, .weight_decay = 0},
       .has_betas = true}};
  return kKinds;
}

const OptimizerKind& optimizer_kind(std::string_view name) {
  return find_kind(optimizer_kinds(), name, "train.optimizer.kind");
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, const Tensors& parameters) {
  return optimizer_kind(options.kind).make(options, parameters);
}

Optimizer::Optimizer(std::unique_ptr<torch::optim::Optimizer> optimizer, OptimizerState form)
    : optimizer_(std::move(optimizer)), form_(std::move(form)) {}

Optimizer::~Optimizer() = default;

void Optimizer::zero_grad() { optimizer_->zero_grad(); }

void Optimizer::set_learning_rate(double rate) {
  for (auto& group : optimizer_->param_groups()) group.options().set_lr(rate);
}

void Optimizer::step() { optimizer_->step(); }

Tensors Optimizer::predict(double distance) const {
  const at::NoGradGuard no_grad;
  STRAIT_CHECK(can_predict(), "the optimizer's direction is not known");
  const auto& all = optimizer_->state();
  using Key = std::decay_t<decltype(all)>::key_type;
  Tensors predicted;
  for (const auto& group : optimizer_->param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto found = all.find(key_of<Key>(parameter));
      const at::Tensor direction =
          found == all.end() ? at::Tensor() : form_.direction(*found->second, group.options());
      predicted.push_back(direction.defined() ? parameter.detach().sub(direction, distance)
                                              : parameter.detach().clone());
    }
  }
  return predicted;
}

void Optimizer::visit_state(const NamedTensors& parameters, StateVisitor& visitor) {
  auto& all = optimizer_->state();
  using Key = std::decay_t<decltype(all)>::key_type;
  for (const auto& [name, parameter] : parameters) {
    const auto found = all.find(key_of<Key>(parameter));
    auto tensors = found == all.end() ? Tensors(form_.names.size()) : form_.take(*found->second);
    for (size_t i = 0; i < tensors.size(); ++i) visitor.tensor(name + "." + form_.names[i], tensors[i]);
    if (!tensors.empty() && tensors.front().defined())
      all[key_of<Key>(parameter)] = form_.make(tensors, parameter);
  }
}

}  // namespace strait
