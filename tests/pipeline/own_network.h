#pragma once

#include <torch/torch.h>

#include <tuple>

#include "strait/pipeline.h"

namespace strait::test {

/// A network in four stages of every kind that a Pipeline takes, with two tensors at the first cut, one at the
/// others; and the same unsplit.
struct OwnNetwork {
  struct StemImpl : torch::nn::Module {
    StemImpl()
        : wide(register_module("wide", torch::nn::Linear(6, 16))),
          skip(register_module("skip", torch::nn::Linear(6, 4))) {}
    std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x) { return {wide(x).tanh(), skip(x)}; }
    torch::nn::Linear wide;
    torch::nn::Linear skip;
  };
  struct JoinImpl : torch::nn::Module {
    JoinImpl() : layer(register_module("layer", torch::nn::Linear(20, 12))) {}
    at::Tensor forward(const at::Tensor& x, const at::Tensor& skip) {
      return layer(at::cat({x, skip}, 1)).relu();
    }
    torch::nn::Linear layer;
  };

  explicit OwnNetwork(uint64_t seed = 1) {
    torch::manual_seed(seed);
    stem = std::make_shared<StemImpl>();
    join = std::make_shared<JoinImpl>();
    body = torch::nn::Sequential(torch::nn::Linear(12, 8), torch::nn::Tanh());
    head = torch::randn({8, 5}).requires_grad_(true);
  }

  at::Tensor operator()(const at::Tensor& x) {
    const auto [wide, skip] = stem->forward(x);
    return at::matmul(body->forward(join->forward(wide, skip)), head);
  }

  /// The stages as a Pipeline takes them: two modules, a Sequential, a function with its parameters.
  std::vector<StageModule> stages() {
    return {stem, join, body, {[head = head](const at::Tensor& x) { return at::matmul(x, head); }, {head}}};
  }

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& part : {stem->parameters(), join->parameters(), body->parameters()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    all.push_back(head);
    return all;
  }

  std::shared_ptr<StemImpl> stem;
  std::shared_ptr<JoinImpl> join;
  torch::nn::Sequential body = nullptr;
  at::Tensor head;
};

inline at::Tensor mean_square(const at::Tensor& output, const at::Tensor& targets) {
  return (output - targets).square().mean();
}

/// A batch of a regression, always the same for a step.
struct OwnBatch {
  explicit OwnBatch(uint64_t step, int64_t rows = 12) {
    torch::manual_seed(100 + step);
    inputs = torch::randn({rows, 6});
    targets = torch::randn({rows, 5});
    for (int64_t row = 0; row < rows; ++row) ids.push_back(static_cast<int64_t>(step % 4) * rows + row);
  }
  at::Tensor inputs;
  at::Tensor targets;
  std::vector<int64_t> ids;
};

/// Links of the three boundaries.
inline std::vector<Boundary> own_boundaries(const std::string& codec, const std::string& feedback = "none") {
  std::vector<Boundary> boundaries;
  for (const char* name : {"stem", "join", "body"}) {
    boundaries.emplace_back(name, make_link(codec, feedback), make_link(codec, feedback));
  }
  return boundaries;
}

}  // namespace strait::test
