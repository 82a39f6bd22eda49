// GPT-2 whose residual stream lies in a subspace, held against the published network with the products written
// out.

#include "strait/models/subspace.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "strait/base/error.h"
#include "strait/base/rng_scope.h"
#include "strait/models/kinds.h"
#include "strait/models/layer.h"
#include "tests/models/tiny_gpt2.h"

namespace strait {
namespace {

using test::next_token_loss;
using test::random_tokens;
using test::tiny_gpt2;

constexpr int64_t kRank = 5;
constexpr int64_t kTokens = 9;

Gpt2Options narrow_gpt2() {
  Gpt2Options options = tiny_gpt2();
  options.subspace = kRank;
  return options;
}

/// With larger weights than at the beginning, which tell more.
Model narrow_model(uint64_t seed) {
  torch::manual_seed(seed);
  Model model = make_gpt2(narrow_gpt2(), kTokens);
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model.parameters()) parameter.mul_(5).add_(torch::randn_like(parameter) * 0.1);
  return model;
}

std::map<std::string, at::Tensor> state_map(const Model& model) {
  const auto state = model.state();
  return {state.begin(), state.end()};
}

SubspaceTables tables_of(const Model& model) {
  SubspaceTables tables(tiny_gpt2().width, kRank, tiny_gpt2().vocab, 0.02);
  tables.make(state_map(model).at("subspace.seed").item<int64_t>(), at::kFloat);
  return tables;
}

/// Whether the network without a subspace has more columns there.
bool is_narrow(const at::Tensor& own, const at::Tensor& whole) { return own.sizes() != whole.sizes(); }

/// The published network whose weights are what those of the model come to: A U^T in place of A, and E + A U^T.
Model written_out(const Model& model) {
  Model whole = make_gpt2(tiny_gpt2(), kTokens);
  const SubspaceTables tables = tables_of(model);
  const auto weights = state_map(model);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, value] : whole.state()) {
    const at::Tensor& own = weights.at(name);
    value.copy_(is_narrow(own, value) ? at::matmul(own, tables.basis().t()) : own);
    if (name == "wte.weight") value.add_(tables.embedding());
  }
  return whole;
}

at::Tensor all_logits(const Model& model, const at::Tensor& tokens) {
  return model.forward(tokens, 0, model.layers.size());
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

TEST(Subspace, LogitsAndGradientsAreThoseOfTheProductsWrittenOut) {
  Model model = narrow_model(3);
  Model whole = written_out(model);
  const at::Tensor tokens = random_tokens(4, kTokens);
  const at::Tensor expected = all_logits(whole, tokens);
  const at::Tensor found = all_logits(model, tokens);
  EXPECT_LT(largest(found - expected), 1e-4 * largest(expected));
  next_token_loss(expected, tokens).backward();
  next_token_loss(found, tokens).backward();
  const SubspaceTables tables = tables_of(model);
  const auto theirs = state_map(whole);
  int narrow = 0;
  for (const auto& [name, parameter] : model.named_parameters()) {
    at::Tensor gradient = theirs.at(name).grad();
    if (is_narrow(parameter, gradient)) {
      gradient = at::matmul(gradient, tables.basis());
      ++narrow;
    }
    EXPECT_GT(largest(gradient), 1e-6) << name;
    EXPECT_LT(largest(parameter.grad() - gradient), 1e-4 * largest(gradient)) << name;
  }
  EXPECT_EQ(narrow, 2 + 2 * 4);  // two embeddings, and two projections with their biases in each block
}

TEST(Subspace, TheStreamStaysInItThroughTraining) {
  Model model = narrow_model(5);
  torch::optim::AdamW optimizer(model.parameters(), torch::optim::AdamWOptions(0.02).weight_decay(0.1));
  const at::Tensor tokens = random_tokens(6, kTokens);
  double first = 0;
  double last = 0;
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = next_token_loss(all_logits(model, tokens), tokens);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first);
  const torch::NoGradGuard no_grad;
  const SubspaceTables tables = tables_of(model);
  const Model whole = written_out(model);
  for (size_t end = 1; end < model.layers.size(); ++end) {
    const at::Tensor moved = whole.forward(tokens, 0, end) - at::embedding(tables.embedding(), tokens);
    const auto crossing = model.run({tokens}, 0, end);
    ASSERT_EQ(crossing.size(), 2U);
    EXPECT_EQ(crossing[0].sizes(), (std::vector<int64_t>{6, kTokens, kRank}));
    EXPECT_TRUE(at::equal(crossing[1], tokens));
    const at::Tensor z = at::matmul(moved, tables.basis());
    EXPECT_LT(largest(moved - at::matmul(z, tables.basis().t())), 1e-5 * largest(moved)) << end;
    EXPECT_LT(largest(crossing[0] - z), 1e-5 * largest(z)) << end;
    // What comes after a cut needs no more than what crosses it.
    EXPECT_TRUE(at::equal(model.run(crossing, end, model.layers.size()).front(), all_logits(model, tokens)));
  }
}

TEST(Subspace, GradientsAreFiniteDifferences) {
  Model model = narrow_model(7);
  for (const auto& layer : model.layers) layer.layer->to(at::kDouble);
  const at::Tensor tokens = random_tokens(2, kTokens);
  const auto loss = [&] { return next_token_loss(all_logits(model, tokens), tokens); };
  loss().backward();
  const torch::NoGradGuard no_grad;
  constexpr double kStep = 2e-6;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const at::Tensor values = parameter.view({-1});
    for (const int64_t place : {int64_t{0}, values.numel() / 2, values.numel() - 1}) {
      const auto before = values[place].item<double>();
      values[place].fill_(before + kStep);
      const auto above = loss().item<double>();
      values[place].fill_(before - kStep);
      const auto below = loss().item<double>();
      values[place].fill_(before);
      EXPECT_NEAR(parameter.grad().view({-1})[place].item<double>(), (above - below) / (2 * kStep), 1e-8)
          << name << " at " << place;
    }
  }
}

TEST(Subspace, TablesAreOfTheSeedAlone) {
  SubspaceTables tables(40, 8, 3000, 0.02);
  tables.make(12345, at::kFloat);
  const at::Tensor basis = tables.basis();
  const at::Tensor embedding = tables.embedding();
  EXPECT_EQ(basis.sizes(), (std::vector<int64_t>{40, 8}));
  EXPECT_TRUE(at::allclose(basis.t().matmul(basis), torch::eye(8), 1e-5, 1e-6));
  EXPECT_EQ(embedding.sizes(), (std::vector<int64_t>{3000, 40}));
  EXPECT_NEAR(embedding.mean().item<double>(), 0, 3e-4);
  EXPECT_NEAR(embedding.std().item<double>(), 0.02, 1e-4);
  EXPECT_LE(largest(embedding), 0.02 * std::sqrt(3.0) + 1e-9);
  tables.make(12346, at::kFloat);
  EXPECT_FALSE(at::equal(tables.basis(), basis));
  EXPECT_FALSE(at::equal(tables.embedding(), embedding));
  torch::manual_seed(99);
  tables.make(12345, at::kFloat);
  EXPECT_TRUE(at::equal(tables.basis(), basis));
  EXPECT_TRUE(at::equal(tables.embedding(), embedding));
}

TEST(Subspace, IsOfTheRunsSeed) {
  const auto seed_with = [](uint64_t seed) {
    return state_map(narrow_model(seed)).at("h.1.subspace.seed").item<int64_t>();
  };
  EXPECT_EQ(seed_with(1), seed_with(1));
  EXPECT_NE(seed_with(1), seed_with(2));
}

TEST(Subspace, LayersHandOnTheCoordinatesAndTheHeadIsFree) {
  Model model = narrow_model(1);
  const auto state = state_map(model);
  EXPECT_EQ(state.at("wte.weight").sizes(), (std::vector<int64_t>{19, kRank}));
  EXPECT_EQ(state.at("wpe.weight").sizes(), (std::vector<int64_t>{10, kRank}));
  EXPECT_EQ(state.at("h.1.attn.c_proj.weight").sizes(), (std::vector<int64_t>{12, kRank}));
  EXPECT_EQ(state.at("h.1.mlp.c_proj.bias").sizes(), (std::vector<int64_t>{kRank}));
  EXPECT_EQ(state.at("h.1.mlp.c_fc.weight").sizes(), (std::vector<int64_t>{12, 48}));
  EXPECT_EQ(state.at("lm_head.weight").sizes(), (std::vector<int64_t>{19, 12}));
  EXPECT_TRUE(model.ties.empty());
  EXPECT_EQ(boundary_shapes(model, cut_into_stages(model, {"embed", "h.0", "h.1"})),
            std::vector<std::vector<int64_t>>(3, {kTokens, kRank}));
}

TEST(Subspace, RecomputingGivesTheSameBits) {
  const at::Tensor tokens = random_tokens(3, kTokens);
  std::vector<std::vector<at::Tensor>> results;
  for (const bool recompute : {false, true}) {
    Gpt2Options options = narrow_gpt2();
    options.dropout = 0.2;
    options.recompute = recompute;
    torch::manual_seed(4);
    const Model model = make_gpt2(options, kTokens);
    const RngScope draws({.seed = 7, .step = 3});
    const at::Tensor loss = next_token_loss(all_logits(model, tokens), tokens);
    loss.backward();
    auto& result = results.emplace_back(std::vector{loss.detach()});
    for (const auto& parameter : model.parameters()) result.push_back(parameter.grad());
  }
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_TRUE(at::equal(results[0][i], results[1][i])) << i;
}

TEST(Subspace, IsNarrowerThanTheNetwork) {
  const ModelOptions options("gpt2", {{"width", 12}, {"heads", 3}, {"vocab", 19}, {"subspace", 12}});
  try {
    make_model(options, {.shape = {4}});
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "model.subspace: expected less than model.width, which is 12, found 12");
  }
}

}  // namespace
}  // namespace strait
