#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include <concepts>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/pipeline/stage.h"

namespace strait {

namespace detail {

/// What a callable gives, as a list: a tensor, a list of tensors, or a pair or tuple of tensors.
inline TensorList as_list(at::Tensor tensor) { return {std::move(tensor)}; }
inline TensorList as_list(TensorList tensors) { return tensors; }
template <class Tuple>
requires requires { std::tuple_size<std::decay_t<Tuple>>::value; }
TensorList as_list(Tuple&& tensors) {
  return std::apply([](auto&&... each) { return TensorList{std::forward<decltype(each)>(each)...}; },
                    std::forward<Tuple>(tensors));
}

/// Calls a function with the tensors one by one where it takes that many, else with the list.
template <class Function>
TensorList call(Function& function, const TensorList& x) {
  using T = const at::Tensor&;
  if constexpr (std::invocable<Function&, T>) {
    if (x.size() == 1) return as_list(function(x[0]));
  }
  if constexpr (std::invocable<Function&, T, T>) {
    if (x.size() == 2) return as_list(function(x[0], x[1]));
  }
  if constexpr (std::invocable<Function&, T, T, T>) {
    if (x.size() == 3) return as_list(function(x[0], x[1], x[2]));
  }
  if constexpr (std::invocable<Function&, T, T, T, T>) {
    if (x.size() == 4) return as_list(function(x[0], x[1], x[2], x[3]));
  }
  if constexpr (std::invocable<Function&, const TensorList&>) {
    return as_list(function(x));
  } else {
    throw InputError("it does not take {}", x.size() == 1 ? "one tensor" : fmt::format("{} tensors", x.size()));
  }
}

/// A module of LibTorch behind a pointer: std::shared_ptr of one, or a holder such as torch::nn::Sequential.
template <class M>
concept ModulePointer = requires(M& module, bool on) {
  { module->parameters() } -> std::convertible_to<std::vector<at::Tensor>>;
  module->train(on);
  { module->is_training() } -> std::convertible_to<bool>;
};

/// The forward() of such a module as a function, for as many tensors as it takes.
template <class M>
struct ForwardOf {
  M& module;
  template <class... T>
  auto operator()(const T&... each) const -> decltype(module->forward(each...)) {
    return module->forward(each...);
  }
};

/// Puts a module of LibTorch with all its parts into evaluation, and in the next call each part back into the
/// mode that it had. Gives the mode that the module had.
template <class Module>
class PartModes {
 public:
  bool operator()(Module& module, bool on) {
    const bool before = module.is_training();
    if (before_.empty() && !on) {
      for (auto& part : module.modules()) before_.emplace_back(part, part->is_training());
      module.train(false);
    } else {
      for (auto& [part, mode] : before_) part->train(mode);  // parents first: it sets those below too
      before_.clear();
    }
    return before;
  }

 private:
  using Part = typename decltype(std::declval<Module&>().modules())::value_type;
  std::vector<std::pair<Part, bool>> before_;
};

/// The same for a module that sees to its parts itself.
template <class Module>
requires(!requires(Module & module) { module.modules(); }) class PartModes<Module> {
 public:
  bool operator()(Module& module, bool on) const {
    const bool before = module.is_training();
    module.train(on);
    return before;
  }
};

/// torch::nn::AnyModule.
template <class M>
concept ModuleBox = requires(M& module) {
  { module.ptr()->parameters() } -> std::convertible_to<std::vector<at::Tensor>>;
};

}  // namespace detail

/// A part of a network as its owner hands it to a Pipeline: whatever computes tensors from tensors, with the
/// parameters that it trains. It takes what the stage before gives, one tensor as `const at::Tensor&` or up to
/// four of them, or a TensorList; and it gives a tensor, a TensorList, or a pair or tuple of tensors.
///
/// An empty one stands for a stage that another process runs.
class StageModule {
 public:
  StageModule() = default;

  /// A module of LibTorch: std::shared_ptr of one, a holder such as torch::nn::Linear or torch::nn::Sequential.
  template <detail::ModulePointer Module>
  StageModule(Module module)  // NOLINT(google-explicit-constructor): stages are listed as they are
      : parameters_([module]() mutable { return module->parameters(); }),
        train_([module, modes = detail::PartModes<std::remove_reference_t<decltype(*module)>>()](
                   bool on) mutable { return modes(*module, on); }) {
    forward_ = [module](const TensorList& x) mutable {
      detail::ForwardOf<Module> function{module};
      return detail::call(function, x);
    };
  }

  /// torch::nn::AnyModule.
  template <detail::ModuleBox Module>
  requires(!detail::ModulePointer<Module>) StageModule(Module module)  // NOLINT(google-explicit-constructor)
      : parameters_([module]() mutable { return module.ptr()->parameters(); }),
        train_([module, modes = detail::PartModes<std::remove_reference_t<decltype(*module.ptr())>>()](
                   bool on) mutable { return modes(*module.ptr(), on); }) {
    forward_ = [module](const TensorList& x) mutable {
      auto function = [&module](const auto&... each) { return module.forward(each...); };
      return detail::call(function, x);
    };
  }

  /// A function, with the parameters that it uses.
  template <class Function>
  requires(!detail::ModulePointer<Function> && !detail::ModuleBox<Function> &&
           !std::same_as<Function, StageModule>)
      StageModule(Function function,
                  std::vector<at::Tensor> parameters = {})  // NOLINT(google-explicit-constructor)
      : forward_([function](const TensorList& x) mutable { return detail::call(function, x); }),
        parameters_([parameters = std::move(parameters)] { return parameters; }) {}

  /// Whether there is anything to run.
  explicit operator bool() const { return static_cast<bool>(forward_); }

  /// The part of the network.
  const StageForward& forward() const { return forward_; }

  /// What is trained, as the module has it at this time; may be empty.
  std::vector<at::Tensor> parameters() const { return parameters_ ? parameters_() : std::vector<at::Tensor>(); }

  /// Puts a module out of training mode (false), and in the next call each of its parts back into the mode that
  /// it had. Says which the module was in. Does nothing to a function.
  bool train(bool on) const { return train_ ? train_(on) : on; }

 private:
  StageForward forward_;
  std::function<std::vector<at::Tensor>()> parameters_;
  std::function<bool(bool)> train_;
};

/// The loss as its owner hands it to a Pipeline: a function of the last stage's output (see StageModule for
/// several tensors) and the targets that gives the mean over the rows, a scalar tensor, or a Loss.
///
/// Where it is a mean over something else, such as the labels that are not padding, `count` says how many the
/// targets of a micro-batch have: then the gradients of a batch are those of its mean over all of them, into
/// however many micro-batches it is cut. The loss is not called for a micro-batch that has none.
class LossModule {
 public:
  /// How many predictions targets [B, ...] stand for.
  using Count = std::function<int64_t(const at::Tensor& targets)>;

  LossModule() = default;

  /// A function of the output and the targets.
  template <class Function>
  requires(!std::same_as<Function, LossModule>)

      LossModule(Function function, Count count = nullptr)  // NOLINT(google-explicit-constructor)
      : loss_([function, count](const TensorList& output, const at::Tensor& targets) mutable -> Loss {
          std::optional<int64_t> own;
          if (count) own = count(targets);
          if (own == 0) return {.mean = at::zeros({}, output.at(0).options()), .correct = 0, .count = 0};
          if constexpr (std::invocable<Function&, const at::Tensor&, const at::Tensor&>) {
            if (output.size() == 1) return as_loss(function(output.front(), targets), targets, own);
          }
          if constexpr (std::invocable<Function&, const TensorList&, const at::Tensor&>) {
            return as_loss(function(output, targets), targets, own);
          } else {
            throw InputError("the loss does not take {} tensors and the targets", output.size());
          }
        }),
        count_(std::move(count)) {}

  /// Whether there is a loss.
  explicit operator bool() const { return static_cast<bool>(loss_); }

  /// The loss.
  const StageLoss& function() const { return loss_; }

  /// What it is a mean over; null: the rows.
  const Count& count() const { return count_; }

 private:
  static Loss as_loss(Loss loss, const at::Tensor& /*targets*/, std::optional<int64_t> count) {
    if (count) loss.count = *count;
    return loss;
  }
  static Loss as_loss(at::Tensor mean, const at::Tensor& targets, std::optional<int64_t> count) {
    return {.mean = std::move(mean), .correct = 0, .count = count.value_or(targets.size(0))};
  }

  StageLoss loss_;
  Count count_;
};

}  // namespace strait
