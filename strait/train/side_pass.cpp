#include "strait/train/side_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include <optional>
#include <set>
#include <utility>

#include "strait/pipeline/restored_generator.h"

namespace strait {
namespace {

/// Exchanges the gradients of parameters with others for its lifetime.
class ExchangedGradients {
 public:
  ExchangedGradients(const std::vector<at::Tensor>& parameters, std::vector<at::Tensor>& others)
      : parameters_(parameters), others_(others) {
    swap();
  }
  ~ExchangedGradients() { swap(); }
  ExchangedGradients(const ExchangedGradients&) = delete;
  ExchangedGradients& operator=(const ExchangedGradients&) = delete;

 private:
  void swap() const {
    for (size_t i = 0; i < parameters_.size(); ++i) std::swap(parameters_[i].mutable_grad(), others_[i]);
  }

  const std::vector<at::Tensor>& parameters_;
  std::vector<at::Tensor>& others_;
};

/// Gives tensors at the end of its lifetime the values that they had at its beginning.
class RestoredValues {
 public:
  explicit RestoredValues(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {
    for (const auto& tensor : tensors) before_.push_back(tensor.detach().clone());
  }
  ~RestoredValues() {
    try {
      const at::NoGradGuard no_grad;
      for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i].variable_data().copy_(before_[i]);
    } catch (const c10::Error&) {  // of a device that has failed, for which an exception is under way
    }
  }
  RestoredValues(const RestoredValues&) = delete;
  RestoredValues& operator=(const RestoredValues&) = delete;

 private:
  const std::vector<at::Tensor>& tensors_;
  std::vector<at::Tensor> before_;
};

}  // namespace

SidePass::SidePass(const Model& own) {
  std::set<std::string> of_parameters;
  for (const auto& [name, parameter] : own.named_parameters()) {
    of_parameters.insert(name);
    names_.push_back(name);
    parameters_.push_back(parameter);
  }
  for (const auto& [name, value] : own.state()) {
    if (!of_parameters.contains(name)) buffers_.push_back(value);
  }
}

void SidePass::run(std::vector<at::Tensor>& gradients, const std::function<void()>& pass) const {
  if (gradients.empty()) {
    for (const auto& parameter : parameters_) gradients.push_back(at::zeros_like(parameter));
  }
  const at::Device device = parameters_.empty() ? at::kCPU : parameters_.front().device();
  const RestoredGenerator host(at::kCPU);
  std::optional<RestoredGenerator> other;
  if (!device.is_cpu()) other.emplace(device);
  const RestoredValues buffers(buffers_);
  const ExchangedGradients exchanged(parameters_, gradients);
  pass();
}

}  // namespace strait
