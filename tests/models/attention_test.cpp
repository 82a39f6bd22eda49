#include "strait/models/attention.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <set>

#include "strait/base/rng_scope.h"
#include "strait/models/dropout.h"

namespace strait {
namespace {

constexpr RngKey kDraws{.seed = 9, .step = 4, .first_row = 2};
constexpr uint64_t kPlace = 5;

/// The formula as it stands, which keeps all weights.
at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double probability) {
  const int64_t tokens = q.size(2);
  const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor later = torch::ones({tokens, tokens}, torch::kBool).triu(1);
  const at::Tensor weights = scores.masked_fill(later, -std::numeric_limits<double>::infinity()).softmax(-1);
  return at::matmul(dropout(weights, probability, kPlace), v);
}

struct Case {
  int64_t rows;
  int64_t heads;
  int64_t tokens;
  double dropout;
};

class Attention : public testing::TestWithParam<Case> {
 protected:
  /// The result and the gradients of q, k and v for a fixed gradient of the result, in float64.
  template <class Function>
  static std::vector<at::Tensor> run(const Function& attention) {
    const auto& [rows, heads, tokens, probability] = GetParam();
    torch::manual_seed(6);
    const auto draw = [&, shape = std::vector<int64_t>{rows, heads, tokens, 6}] {
      return torch::randn(shape, torch::kDouble);
    };
    const std::vector<at::Tensor> inputs = {draw().requires_grad_(), draw().requires_grad_(),
                                            draw().requires_grad_()};
    const at::Tensor y = [&] {
      const RngScope draws(kDraws);
      return attention(inputs[0], inputs[1], inputs[2], probability);
    }();
    y.backward(draw());  // outside the scope: the draws are those of the forward pass
    return {y.detach(), inputs[0].grad(), inputs[1].grad(), inputs[2].grad()};
  }
};

TEST_P(Attention, EqualsTheFormulaAndItsGradients) {
  const auto expected = run(plain_attention);
  const auto got = run([](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double probability) {
    return causal_attention(q, k, v, probability, kPlace);
  });
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got[i].sizes(), expected[i].sizes());
    EXPECT_TRUE(at::allclose(got[i], expected[i], 1e-9, 1e-10)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Attention,
                         testing::Values(Case{1, 1, 1, 0}, Case{2, 3, 7, 0}, Case{2, 3, 7, 0.3},
                                         Case{1, 2, 128, 0.1}, Case{3, 2, 129, 0.5}, Case{2, 1, 300, 0.1},
                                         Case{1, 2, 300, 0}),
                         [](const auto& info) { return "case" + std::to_string(info.index); });

TEST(Attention, TakesTensorsThatAreNotDense) {
  const at::Tensor packed = torch::randn({2, 9, 3, 4, 5});
  const auto parts = packed.permute({2, 0, 3, 1, 4}).unbind(0);  // [2, 4, 9, 5]
  EXPECT_TRUE(at::allclose(causal_attention(parts[0], parts[1], parts[2]),
                           plain_attention(parts[0], parts[1], parts[2], 0), 1e-5, 1e-6));
}

/// The names of the functions that the backward pass from y goes through.
std::set<std::string> graph_of(const at::Tensor& y) {
  std::set<std::string> names;
  std::vector<const torch::autograd::Node*> nodes = {y.grad_fn().get()};
  while (!nodes.empty()) {
    const auto* node = nodes.back();
    nodes.pop_back();
    names.insert(node->name());
    for (const auto& edge : node->next_edges()) {
      if (edge.function) nodes.push_back(edge.function.get());
    }
  }
  return names;
}

TEST(Attention, KeepsNoWeightsForTheBackwardPass) {
  const at::Tensor x = torch::randn({1, 2, 64, 4}).requires_grad_();
  const RngScope draws(kDraws);
  const char* keeps_weights = "SoftmaxBackward0";
  EXPECT_TRUE(graph_of(plain_attention(x, x, x, 0.1)).contains(keeps_weights));
  EXPECT_FALSE(graph_of(causal_attention(x, x, x, 0.1, kPlace)).contains(keeps_weights));
}

}  // namespace
}  // namespace strait
