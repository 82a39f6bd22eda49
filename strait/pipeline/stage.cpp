#include "strait/pipeline/stage.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {

namespace {

StageForward of_lists(Stage::Forward forward) {
  return [forward = std::move(forward)](const TensorList& x) { return TensorList{forward(x.front())}; };
}

StageLoss of_lists(LossFunction loss) {
  if (!loss) return {};
  return [loss = std::move(loss)](const TensorList& x, const at::Tensor& targets) {
    return loss(x.front(), targets);
  };
}

TensorList with(const TensorList& input, const TensorList& extras) {
  TensorList all = input;
  all.insert(all.end(), extras.begin(), extras.end());
  return all;
}

TensorList detached(const TensorList& tensors) {
  TensorList all;
  for (const auto& tensor : tensors) all.push_back(tensor.detach().contiguous());
  return all;
}

bool has_gradient(const TensorList& tensors, size_t i, const std::vector<bool>& gradients) {
  return tensors[i].is_floating_point() && (gradients.empty() || gradients.at(i));
}

Loss checked(Loss loss) {
  if (!loss.mean.defined() || loss.mean.numel() != 1) {
    throw InputError("the loss is a tensor of shape {}, expected a scalar",
                     loss.mean.defined() ? shape_text(loss.mean.sizes()) : "(undefined)");
  }
  if (loss.mean.dim() != 0) loss.mean = loss.mean.squeeze();
  return loss;
}

}  // namespace

Stage::Stage(StageForward forward, StageLoss loss, bool first)
    : forward_(std::move(forward)), loss_(std::move(loss)), first_(first) {}

Stage::Stage(StageForward forward, LossFunction loss, bool first)
    : Stage(std::move(forward), of_lists(std::move(loss)), first) {}

Stage::Stage(Forward forward, LossFunction loss, bool first)
    : Stage(of_lists(std::move(forward)), of_lists(std::move(loss)), first) {}

void Stage::set_gradients(std::vector<bool> of_inputs, std::vector<bool> of_outputs) {
  gradients_of_inputs_ = std::move(of_inputs);
  gradients_of_outputs_ = std::move(of_outputs);
}

bool Stage::input_has_gradient(const TensorList& input, size_t i) const {
  return !first_ && has_gradient(input, i, gradients_of_inputs_);
}

TensorList Stage::make_leaves(const TensorList& input) const {
  if (first_) return input;
  TensorList leaves;
  for (size_t i = 0; i < input.size(); ++i) {
    leaves.push_back(input[i].detach().requires_grad_(input_has_gradient(input, i)));
  }
  return leaves;
}

void Stage::keep(uint32_t micro_batch, const TensorList& leaves, TensorList outputs) {
  TensorList inputs;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (input_has_gradient(leaves, i)) inputs.push_back(leaves[i]);
  }
  const bool added = alive_.emplace(micro_batch, Graph{std::move(inputs), std::move(outputs)}).second;
  STRAIT_CHECK(added, "micro-batch {} went forward twice", micro_batch);
}

TensorList Stage::forward(uint32_t micro_batch, const TensorList& input, const TensorList& extras) {
  const TensorList leaves = make_leaves(input);
  const TensorList outputs = forward_(with(leaves, extras));
  TensorList with_gradient;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (has_gradient(outputs, i, gradients_of_outputs_)) with_gradient.push_back(outputs[i]);
  }
  keep(micro_batch, leaves, std::move(with_gradient));
  return detached(outputs);
}

Loss Stage::forward_loss(uint32_t micro_batch, const TensorList& input, const at::Tensor& targets,
                         const TensorList& extras) {
  const TensorList leaves = make_leaves(input);
  const TensorList outputs = forward_(with(leaves, extras));
  Loss loss = checked(loss_(outputs, targets));
  if (loss.count > 0 && !loss.mean.requires_grad() &&
      std::ranges::any_of(outputs, &at::Tensor::requires_grad)) {
    throw InputError(
        "the loss requires no gradient, although what it was given does; nothing would be trained");
  }
  keep(micro_batch, leaves, {loss.mean});
  loss.mean = loss.mean.detach();
  return loss;
}

TensorList Stage::infer(const TensorList& input, const TensorList& extras) const {
  const at::NoGradGuard no_grad;
  return detached(forward_(with(input, extras)));
}

Loss Stage::infer_loss(const TensorList& input, const at::Tensor& targets, const TensorList& extras) const {
  const at::NoGradGuard no_grad;
  return checked(loss_(forward_(with(input, extras)), targets));
}

TensorList Stage::backward(uint32_t micro_batch, const TensorList& gradients) {
  const auto found = alive_.find(micro_batch);
  STRAIT_CHECK(found != alive_.end(), "micro-batch {} goes back before it went forward", micro_batch);
  const Graph graph = std::move(found->second);
  alive_.erase(found);
  STRAIT_CHECK(graph.outputs.size() == gradients.size(), "{} gradients for {} outputs", gradients.size(),
               graph.outputs.size());
  TensorList outputs;  // those that depend on a parameter or an input
  TensorList theirs;
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (!graph.outputs[i].requires_grad()) continue;
    outputs.push_back(graph.outputs[i]);
    // In the output's memory format, for which the network chose its operations.
    theirs.push_back(gradients[i].contiguous(graph.outputs[i].suggest_memory_format()));
  }
  if (!outputs.empty()) torch::autograd::backward(outputs, theirs);
  TensorList of_inputs;
  for (const auto& input : graph.inputs) {
    of_inputs.push_back(input.grad().defined() ? input.grad().contiguous() : at::zeros_like(input));
  }
  return of_inputs;
}

}  // namespace strait
