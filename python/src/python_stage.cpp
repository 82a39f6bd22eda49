#include "python/src/python_stage.h"

#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>
#include <string>
#include <utility>

#include "python/src/python_error.h"

namespace strait::python {
namespace {

std::string type_name(const py::handle& object) { return py::str(py::type::of(object).attr("__name__")); }

at::Tensor tensor_of(const py::handle& object) {
  if (!THPVariable_Check(object.ptr())) {
    throw InputError("expected a tensor or a tuple of tensors, found {}", type_name(object));
  }
  return object.cast<at::Tensor>();
}

TensorList tensors_of(const py::object& result) {
  if (!py::isinstance<py::tuple>(result) && !py::isinstance<py::list>(result)) return {tensor_of(result)};
  TensorList tensors;
  for (const py::handle each : result) tensors.push_back(tensor_of(each));
  return tensors;
}

py::tuple arguments_of(const TensorList& tensors) {
  py::tuple arguments(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) arguments[i] = tensors[i];
  return arguments;
}

/// A torch.nn.Module as StageModule takes one of LibTorch's.
class PythonModule {
 public:
  explicit PythonModule(py::object module) : module_(std::move(module)) {}

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const py::handle each : module_.attr("parameters")()) {
      auto parameter = each.cast<at::Tensor>();
      if (parameter.requires_grad()) all.push_back(std::move(parameter));
    }
    return all;
  }

  bool is_training() const {
    const py::gil_scoped_acquire gil;
    return module_.attr("training").cast<bool>();
  }

  /// Into evaluation; the next call puts each part back into the mode that it had.
  void train(bool on) {
    const py::gil_scoped_acquire gil;
    if (before_.empty() && !on) {
      for (const py::handle part : module_.attr("modules")()) {
        before_.emplace_back(py::reinterpret_borrow<py::object>(part), part.attr("training").cast<bool>());
      }
      module_.attr("eval")();
    } else {
      for (const auto& [part, training] : before_) part.attr("training") = training;
      before_.clear();
    }
  }

  TensorList forward(const TensorList& x) const {
    const py::gil_scoped_acquire gil;
    try {
      return tensors_of(module_(*arguments_of(x)));
    } catch (py::error_already_set& error) {
      throw PythonError(std::move(error));
    }
  }

 private:
  py::object module_;
  std::vector<std::pair<py::object, bool>> before_;
};

/// What a pipeline calls with the last stage's output and the targets.
class PythonLoss {
 public:
  PythonLoss(py::object loss, py::object correct) : loss_(std::move(loss)), correct_(std::move(correct)) {}

  Loss operator()(const TensorList& output, const at::Tensor& targets) const {
    const py::gil_scoped_acquire gil;
    try {
      const py::object made = output.size() == 1 ? py::cast(output.front()) : py::object(arguments_of(output));
      Loss loss{.mean = mean_of(loss_(made, targets)), .count = targets.size(0)};
      if (!correct_.is_none()) loss.correct = count_of(correct_(made, targets));
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
  static int64_t count_of(const py::object& count) { return py::int_(count).cast<int64_t>(); }

  py::object loss_;
  py::object correct_;
};

}  // namespace

StageModule stage_of(const py::object& module) {
  if (module.is_none()) return {};
  if (py::isinstance(module, py::module_::import("torch.nn").attr("Module"))) {
    return StageModule(std::shared_ptr<PythonModule>(new PythonModule(module), WithGil()));
  }
  if (PyCallable_Check(module.ptr()) == 0) {
    throw InputError("stages: expected modules, callables or None, found {}", type_name(module));
  }
  const std::shared_ptr<PythonModule> function(new PythonModule(module), WithGil());
  return StageModule([function](const TensorList& x) { return function->forward(x); });
}

LossModule loss_of(py::object loss, py::object correct) {
  if (loss.is_none()) return {};
  const std::shared_ptr<PythonLoss> shared(new PythonLoss(std::move(loss), std::move(correct)), WithGil());
  return LossModule(
      [shared](const TensorList& output, const at::Tensor& targets) { return (*shared)(output, targets); });
}

}  // namespace strait::python
