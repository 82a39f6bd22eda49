#include "strait/pipeline/stage.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

#include "strait/base/error.h"

namespace strait {

Stage::Stage(Forward forward, LossFunction loss, bool first)
    : forward_(std::move(forward)), loss_(std::move(loss)), first_(first) {}

at::Tensor Stage::make_leaf(const at::Tensor& input) const {
  return first_ ? input : input.detach().requires_grad_(true);
}

void Stage::keep(uint32_t micro_batch, at::Tensor input, at::Tensor output) {
  const bool added = alive_.emplace(micro_batch, Graph{std::move(input), std::move(output)}).second;
  STRAIT_CHECK(added, "micro-batch {} went forward twice", micro_batch);
}

at::Tensor Stage::forward(uint32_t micro_batch, const at::Tensor& input) {
  const at::Tensor leaf = make_leaf(input);
  at::Tensor output = forward_(leaf);
  keep(micro_batch, leaf, output);
  return output.detach();
}

Loss Stage::forward_loss(uint32_t micro_batch, const at::Tensor& input, const at::Tensor& targets) {
  const at::Tensor leaf = make_leaf(input);
  Loss loss = loss_(forward_(leaf), targets);
  keep(micro_batch, leaf, loss.mean);
  loss.mean = loss.mean.detach();
  return loss;
}

at::Tensor Stage::infer(const at::Tensor& input) const {
  const at::NoGradGuard no_grad;
  return forward_(input);
}

Loss Stage::infer_loss(const at::Tensor& input, const at::Tensor& targets) const {
  const at::NoGradGuard no_grad;
  return loss_(forward_(input), targets);
}

at::Tensor Stage::backward(uint32_t micro_batch, const at::Tensor& gradient) {
  const auto found = alive_.find(micro_batch);
  STRAIT_CHECK(found != alive_.end(), "micro-batch {} goes back before it went forward", micro_batch);
  const Graph graph = std::move(found->second);
  alive_.erase(found);
  torch::autograd::backward({graph.output}, {gradient});
  return first_ ? at::Tensor() : graph.input.grad();
}

}  // namespace strait
