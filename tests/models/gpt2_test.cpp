#include "strait/models/gpt2.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "strait/base/error.h"
#include "strait/base/rng_scope.h"
#include "strait/models/layer.h"
#include "tests/models/language_models.h"

namespace strait {
namespace {

using test::logits;
using test::random_tokens;
using test::tiny_gpt2;

std::map<std::string, at::Tensor> by_name(const Model& model) {
  const auto state = model.state();
  return {state.begin(), state.end()};
}

int64_t count_parameters(const Model& model) {
  int64_t count = 0;
  for (const auto& [name, value] : model.named_parameters()) {
    if (name != "lm_head.weight") count += value.numel();
  }
  return count;
}

TEST(Gpt2, HasThePublishedNamesAndLayouts) {
  const auto state = by_name(make_gpt2(tiny_gpt2(), 8));
  using Shape = std::vector<int64_t>;
  const std::map<std::string, Shape> block = {{"ln_1.weight", {12}},
                                              {"ln_1.bias", {12}},
                                              {"attn.c_attn.weight", {12, 36}},
                                              {"attn.c_attn.bias", {36}},
                                              {"attn.c_proj.weight", {12, 12}},
                                              {"attn.c_proj.bias", {12}},
                                              {"ln_2.weight", {12}},
                                              {"ln_2.bias", {12}},
                                              {"mlp.c_fc.weight", {12, 48}},
                                              {"mlp.c_fc.bias", {48}},
                                              {"mlp.c_proj.weight", {48, 12}},
                                              {"mlp.c_proj.bias", {12}}};
  std::map<std::string, Shape> expected = {{"wte.weight", {19, 12}},
                                           {"wpe.weight", {10, 12}},
                                           {"ln_f.weight", {12}},
                                           {"ln_f.bias", {12}},
                                           {"lm_head.weight", {19, 12}}};
  for (const auto& [name, shape] : block) {
    expected["h.0." + name] = shape;
    expected["h.1." + name] = shape;
  }
  std::map<std::string, Shape> found;
  for (const auto& [name, value] : state) found[name] = value.sizes().vec();
  EXPECT_EQ(found, expected);
}

TEST(Gpt2, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(count_parameters(make_gpt2(Gpt2Options{}, 1024)), 124'439'808);
}

TEST(Gpt2, BeginsAsPublished) {
  Gpt2Options options = tiny_gpt2();
  options.width = 120;
  options.vocab = 300;
  torch::manual_seed(1);
  const auto state = by_name(make_gpt2(options, 8));
  const auto deviation = [&](const char* name) { return state.at(name).std().item<double>(); };
  EXPECT_NEAR(deviation("wte.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("wpe.weight"), 0.02, 0.002);
  EXPECT_NEAR(deviation("h.1.attn.c_attn.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("h.1.mlp.c_fc.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("h.1.attn.c_proj.weight"), 0.01, 0.0005);  // 0.02 / sqrt(2 * 2)
  EXPECT_NEAR(deviation("h.1.mlp.c_proj.weight"), 0.01, 0.0005);
  EXPECT_TRUE(at::equal(state.at("lm_head.weight"), state.at("wte.weight")));
  for (const char* name : {"h.0.attn.c_attn.bias", "h.0.mlp.c_proj.bias", "ln_f.bias", "h.0.ln_1.bias"}) {
    EXPECT_EQ(state.at(name).abs().sum().item<double>(), 0) << name;
  }
  EXPECT_TRUE(state.at("h.0.ln_2.weight").eq(1).all().item<bool>());
}

TEST(Gpt2, IsCutBehindBlocks) {
  Gpt2Options options = tiny_gpt2();
  options.layers = 12;
  Model model = make_gpt2(options, 8);
  const auto stages = cut_into_stages(model, {"embed", "h.1", "h.10", "h"});
  ASSERT_EQ(stages.size(), 5U);
  EXPECT_EQ(stages[1].end, 3U);  // embed, h.0, h.1
  EXPECT_EQ(stages[2].end, 12U);
  EXPECT_EQ(stages[3].end, 13U);
  EXPECT_EQ(boundary_shapes(model, stages), std::vector<std::vector<int64_t>>(4, {8, 12}));
  EXPECT_THROW(cut_into_stages(model, {"h.12"}), InputError);
}

TEST(Gpt2, SeesNothingOfWhatComesLater) {
  torch::manual_seed(2);
  Model model = make_gpt2(tiny_gpt2(), 10);
  model.train(false);
  const torch::NoGradGuard no_grad;
  const at::Tensor tokens = random_tokens(2, 10);
  const at::Tensor before = test::expect_nothing_seen_of_later(model, tokens);
  // Fewer tokens than the context are the first of it.
  EXPECT_TRUE(at::allclose(logits(model, tokens.narrow(1, 0, 4)), before.narrow(1, 0, 4), 1e-5, 1e-6));
}

TEST(Gpt2, RecomputingGivesTheSameBits) {
  test::expect_the_bits_of_recomputing([](bool recompute) {
    Gpt2Options options = tiny_gpt2();
    options.dropout = 0.2;
    options.recompute = recompute;
    return make_gpt2(options, 10);
  });
}

TEST(Gpt2, DropoutIsOfTrainingAndDrawnAnewForEachPlace) {
  Gpt2Options options = tiny_gpt2();
  options.dropout = 0.5;
  torch::manual_seed(5);
  Model model = make_gpt2(options, 10);
  ASSERT_EQ(model.layers.size(), 4U);
  const RngScope draws({.seed = 1});
  const torch::NoGradGuard no_grad;
  const at::Tensor tokens = random_tokens(40, 10);
  model.train(false);
  const at::Tensor plain = model.forward(tokens, 0, 1);
  model.train(true);
  const at::Tensor embedded = model.forward(tokens, 0, 1);
  EXPECT_NEAR(embedded.eq(0).to(at::kFloat).mean().item<double>(), 0.5, 0.02);
  EXPECT_TRUE(at::allclose(embedded, at::where(embedded.eq(0), embedded, plain * 2)));
  // With equal weights two blocks differ by their draws alone.
  const auto first = model.layers[1].layer->parameters();
  const auto second = model.layers[2].layer->parameters();
  for (size_t i = 0; i < first.size(); ++i) second[i].copy_(first[i]);
  EXPECT_FALSE(at::allclose(model.forward(plain, 1, 2), model.forward(plain, 2, 3)));
  model.train(false);
  EXPECT_TRUE(at::equal(model.forward(plain, 1, 2), model.forward(plain, 2, 3)));
}

TEST(Gpt2, ATokenWithoutAnEmbeddingIsNamed) {
  Model model = make_gpt2(tiny_gpt2(), 10);
  try {
    logits(model, torch::full({1, 10}, 19, torch::kLong));
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "model.vocab: expected more than 19, a token of the data, found 19");
  }
}

}  // namespace
}  // namespace strait
