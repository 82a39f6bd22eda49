#include "strait/models/llama.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "strait/base/error.h"
#include "strait/models/kinds.h"
#include "tests/models/language_models.h"
#include "tests/models/tiny_llama.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using test::tiny_llama;

int64_t values_of(const Model& model) {
  int64_t count = 0;
  for (const auto& [name, value] : model.named_parameters()) {
    if (name != "lm_head.weight" || model.ties.empty()) count += value.numel();
  }
  return count;
}

TEST(Llama, HasTheNumberOfParametersOfSmolLm) {
  EXPECT_EQ(values_of(make_llama(LlamaOptions{}, 16)), 134'515'008);
}

TEST(Llama, BeginsAsHuggingFaceDrawsIt) {
  torch::manual_seed(1);
  LlamaOptions options = tiny_llama(false);
  options.width = 120;
  options.vocab = 300;
  std::map<std::string, at::Tensor> state;
  for (auto& [name, value] : make_llama(options, 8).state()) state[name] = value;
  for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight",
                           "model.layers.0.mlp.down_proj.weight", "lm_head.weight"}) {
    EXPECT_NEAR(state.at(name).std().item<double>(), 0.02, 0.001) << name;
  }
  EXPECT_FALSE(at::equal(state.at("lm_head.weight"), state.at("model.embed_tokens.weight")));
  EXPECT_TRUE(state.at("model.layers.1.post_attention_layernorm.weight").eq(1).all().item<bool>());
}

TEST(Llama, IsCutBehindBlocks) {
  Model model = make_llama(tiny_llama(true), 8);
  const auto stages = cut_into_stages(model, {"embed", "layers.0", "layers"});
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[1].end, 2U);
  EXPECT_EQ(stages[2].end, 3U);
  EXPECT_EQ(boundary_shapes(model, stages), std::vector<std::vector<int64_t>>(3, {8, 24}));
}

TEST(Llama, SeesNothingOfWhatComesLater) {
  torch::manual_seed(2);
  Model model = make_llama(tiny_llama(true), 10);
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : model.parameters()) parameter.mul_(10);
  test::expect_nothing_seen_of_later(model, test::random_tokens(2, 10));
}

TEST(Llama, RecomputingGivesTheSameBits) {
  test::expect_the_bits_of_recomputing([](bool recompute) {
    LlamaOptions options = tiny_llama(false);
    options.recompute = recompute;
    return make_llama(options, 10);
  });
}

std::string complaint(const SettingList& settings, int64_t tokens = 8) {
  return test::error_of<InputError>([&] { make_model(ModelOptions("llama", settings), {.shape = {tokens}}); });
}

TEST(Llama, SettingsThatDoNotGoTogetherAreNamed) {
  const auto with = [](const char* name, int64_t value) {
    SettingList list = {{"width", 24},   {"layers", 1}, {"heads", 4},
                        {"kv_heads", 2}, {"vocab", 19}, {"context", 8}};
    list.emplace_back(name, value);
    return list;
  };
  EXPECT_EQ(complaint(with("heads", 4)), "");
  EXPECT_EQ(complaint(with("heads", 5)),
            "model.heads: expected a divisor of model.width, which is 24, found 5");
  EXPECT_EQ(complaint(with("heads", 8)), "model.heads: expected model.width / model.heads to be even, found 3");
  EXPECT_EQ(complaint(with("head_size", 5)), "model.head_size: expected an even number, found 5");
  EXPECT_EQ(complaint({{"width", 24}, {"layers", 1}, {"heads", 5}, {"kv_heads", 5}, {"head_size", 4}}), "");
  EXPECT_EQ(complaint({{"rope_low", 4.0}}),
            "model.rope_high: expected more than model.rope_low, which is 4, found 4");
  EXPECT_EQ(complaint(with("kv_heads", 3)),
            "model.kv_heads: expected a divisor of model.heads, which is 4, found 3");
  EXPECT_EQ(complaint(with("heads", 4), 9),
            "model.context: expected at least 9, the tokens of a sample, found 8");
}

TEST(Llama, TheKindCountsTheParameters) {
  const SettingList small = {{"width", 24},   {"layers", 3},  {"heads", 4},
                             {"kv_heads", 2}, {"hidden", 20}, {"vocab", 19}};
  for (const SettingList& more :
       std::vector<SettingList>{{}, {{"qkv_bias", true}}, {{"qk_norm", true}, {"head_size", 10}}}) {
    ModelOptions options("llama", small);
    for (const auto& [key, value] : more) options.settings.set(key, value);
    const SampleForm samples{.shape = {8}};
    int64_t count = 0;
    for (const auto& parameter : make_model(options, samples).parameters()) count += parameter.numel();
    EXPECT_EQ(model_kind("llama").parameters(options.settings, samples), static_cast<double>(count));
  }
}

TEST(Llama, ATokenWithoutAnEmbeddingIsNamed) {
  const Model model = make_llama(tiny_llama(true), 10);
  EXPECT_THROW(model.forward(torch::full({1, 10}, 19, torch::kLong), 0, 1), InputError);
}

}  // namespace
}  // namespace strait
