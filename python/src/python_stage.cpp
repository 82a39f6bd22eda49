#include "python/src/python_stage.h"

#include <ATen/core/grad_mode.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "python/src/python_error.h"

namespace strait::python {
namespace {

std::string type_name(const py::handle& object) { return py::str(py::type::of(object).attr("__name__")); }

at::Tensor tensor_of(const py::handle& object, std::string_view where = "") {
  if (!THPVariable_Check(object.ptr())) {
    const char* const hint =
        py::isinstance<py::dict>(object) ? ": return those of its tensors that are needed" : "";
    throw InputError("expected a tensor or a tuple of tensors, found {}{}{}", type_name(object), where, hint);
  }
  return object.cast<at::Tensor>();
}

TensorList tensors_of(const py::object& result) {
  if (!py::isinstance<py::tuple>(result) && !py::isinstance<py::list>(result)) return {tensor_of(result)};
  TensorList tensors;
  for (const py::handle each : result) tensors.push_back(tensor_of(each, " in a tuple"));
  return tensors;
}

py::tuple arguments_of(const TensorList& tensors) {
  py::tuple arguments(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) arguments[i] = tensors[i];
  return arguments;
}

/// An object that the pipeline in Python holds, so that the collector sees cycles through it. The caller holds
/// the GIL.
class Referred {
 public:
  explicit Referred(const py::object& object) : reference_(object) {}

  py::object get() const {
    py::object object = reference_();
    STRAIT_CHECK(!object.is_none(), "a pipeline without its stages");
    return object;
  }

 private:
  py::weakref reference_;
};

/// Calls a stage of Python's. The caller holds the GIL.
class Caller {
 public:
  Caller(const py::object& stage, ArgumentNames arguments, ExtraNames extras)
      : stage_(stage), arguments_(std::move(arguments)), extras_(std::move(extras)) {}

  /// What it gives for tensors and, behind them, the extras, and what it raises as a PythonError.
  TensorList operator()(const TensorList& x) const {
    const size_t crossing = x.size() - extras_->size();
    py::dict named;
    for (size_t i = 0; i < extras_->size(); ++i) {
      const std::string& name = (*extras_)[i];
      if (!arguments_ || arguments_->contains(name)) named[py::str(name)] = x[crossing + i];
    }
    try {
      return tensors_of(
          stage_.get()(*arguments_of({x.begin(), x.begin() + static_cast<ptrdiff_t>(crossing)}), **named));
    } catch (py::error_already_set& error) {
      throw PythonError(std::move(error));
    }
  }

 private:
  Referred stage_;
  ArgumentNames arguments_;
  ExtraNames extras_;
};

bool any_requires_grad(const TensorList& tensors) {
  return std::ranges::any_of(tensors, [](const at::Tensor& tensor) { return tensor.requires_grad(); });
}

TensorList without_gradients(const TensorList& tensors) {
  TensorList all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach().clone());
  return all;
}

/// A torch.nn.Module as StageModule takes one of LibTorch's.
class PythonModule {
 public:
  PythonModule(const py::object& module, Caller call) : module_(module), call_(std::move(call)) {}

  std::vector<at::Tensor> parameters() const {
    const py::gil_scoped_acquire gil;
    std::vector<at::Tensor> all;
    for (const py::handle each : module_.get().attr("parameters")()) all.push_back(each.cast<at::Tensor>());
    return all;
  }

  bool is_training() const {
    const py::gil_scoped_acquire gil;
    return module_.get().attr("training").cast<bool>();
  }

  /// Into evaluation; the next call puts each part back into the mode that it had. Neither calls a train() of
  /// the module's own, which may do more than set the flag, such as merge weights.
  void train(bool on) {
    const py::gil_scoped_acquire gil;
    if (before_.empty() && !on) {
      for (const py::handle part : module_.get().attr("modules")()) {
        before_.emplace_back(py::reinterpret_borrow<py::object>(part), part.attr("training").cast<bool>());
      }
      for (const auto& [part, training] : before_) part.attr("training") = false;
    } else {
      for (const auto& [part, training] : before_) part.attr("training") = training;
      before_.clear();
    }
  }

  TensorList forward(const TensorList& x) const {
    const py::gil_scoped_acquire gil;
    return call_(x);
  }

 private:
  Referred module_;
  Caller call_;
  std::vector<std::pair<py::object, bool>> before_;
};

/// A callable that is no module. Its first call is the trial of the stages: where what it gives of tensors that
/// require no gradient requires one, it uses parameters that the pipeline would neither clip nor average.
class PythonFunction {
 public:
  explicit PythonFunction(Caller call) : call_(std::move(call)) {}

  TensorList forward(const TensorList& x) {
    const py::gil_scoped_acquire gil;
    if (!is_tried_ && any_requires_grad(call_(without_gradients(x)))) {
      throw InputError(
          "it is a function that uses parameters which are trained; expected a module that has them");
    }
    is_tried_ = true;
    return call_(x);
  }

 private:
  Caller call_;
  bool is_tried_ = false;
};

/// A number that a function of the user's gives, as an int, a tensor of one element or any other number that is
/// whole.
int64_t count_of(std::string_view what, const py::object& found) {
  double number = -1;
  try {
    number = py::float_(found).cast<double>();
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    throw InputError("{}: expected a count, found {}", what, type_name(found));
  }
  constexpr double kMost = 1e15;
  if (number >= 0 && number <= kMost && number == std::floor(number)) return static_cast<int64_t>(number);
  throw InputError("{}: expected a count, found {}", what, number);
}

/// What a pipeline calls with the last stage's output and the targets.
class PythonLoss {
 public:
  PythonLoss(const py::object& loss, const py::object& correct) : loss_(loss) {
    if (!correct.is_none()) correct_.emplace(correct);
  }

  Loss operator()(const TensorList& output, const at::Tensor& targets) const {
    const py::gil_scoped_acquire gil;
    try {
      const py::object made = output.size() == 1 ? py::cast(output.front()) : py::object(arguments_of(output));
      Loss loss{.mean = mean_of(loss_.get()(made, targets)), .count = targets.size(0)};
      if (correct_) loss.correct = count_of("correct", correct_->get()(made, targets));
      return loss;
    } catch (py::error_already_set& error) {
      throw PythonError(std::move(error));
    }
  }

 private:
  static at::Tensor mean_of(const py::object& loss) {
    if (!THPVariable_Check(loss.ptr())) {
      throw InputError("the loss gives {}, expected a scalar tensor", type_name(loss));
    }
    return loss.cast<at::Tensor>();
  }

  Referred loss_;
  std::optional<Referred> correct_;
};

}  // namespace

StageModule stage_of(const py::object& module, ArgumentNames arguments, ExtraNames extras) {
  if (module.is_none()) return {};
  if (PyCallable_Check(module.ptr()) == 0) {
    throw InputError("stages: expected modules, callables or None, found {}", type_name(module));
  }
  Caller call(module, std::move(arguments), std::move(extras));
  if (py::isinstance(module, py::module_::import("torch.nn").attr("Module"))) {
    return StageModule(std::shared_ptr<PythonModule>(new PythonModule(module, std::move(call)), WithGil()));
  }
  const std::shared_ptr<PythonFunction> function(new PythonFunction(std::move(call)), WithGil());
  return StageModule([function](const TensorList& x) { return function->forward(x); });
}

LossModule loss_of(const py::object& loss, const py::object& correct, const py::object& count) {
  if (loss.is_none()) return {};
  const std::shared_ptr<PythonLoss> shared(new PythonLoss(loss, correct), WithGil());
  const auto function = [shared](const TensorList& output, const at::Tensor& targets) {
    return (*shared)(output, targets);
  };
  if (count.is_none()) return LossModule(function);
  const std::shared_ptr<Referred> counts(new Referred(count), WithGil());
  return LossModule(function, [counts](const at::Tensor& targets) {
    const py::gil_scoped_acquire gil;
    try {
      return count_of("count", counts->get()(targets));
    } catch (py::error_already_set& error) {
      throw PythonError(std::move(error));
    }
  });
}

}  // namespace strait::python
