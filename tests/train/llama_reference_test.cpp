// Llama held against an independent implementation in PyTorch, whole and in stages.

#include <gtest/gtest.h>

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "strait/checkpoint/model_file.h"
#include "tests/models/tiny_gpt2.h"
#include "tests/models/tiny_llama.h"
#include "tests/support/python.h"
#include "tests/support/temp_dir.h"
#include "tests/train/token_training.h"

namespace strait {
namespace {

using nlohmann::json;

/// The difference's largest element, as a share of the expected one's.
double relative_error(const at::Tensor& got, const at::Tensor& expected) {
  return ((got - expected).abs().max() / expected.abs().max()).item<double>();
}

struct Variant {
  const char* name;
  LlamaOptions options;
};

LlamaOptions qwen2() {
  LlamaOptions options = test::tiny_llama(true);
  options.qkv_bias = true;
  return options;
}

LlamaOptions qwen3() {
  LlamaOptions options = test::tiny_llama(false);
  options.qk_norm = true;
  options.head_size = 10;
  return options;
}

/// With frequencies on either side of both bounds, and one between them.
LlamaOptions llama3() {
  LlamaOptions options = test::tiny_llama(false);
  options.theta = 50;
  options.scaling = {.factor = 8, .low = 0.5, .high = 1.5, .context = 16};
  return options;
}

class LlamaReference : public testing::TestWithParam<Variant> {};

TEST_P(LlamaReference, LogitsLossAndGradientsEqualPyTorchs) {
  constexpr double kExact = 1e-4;
  const test::TempDir dir;
  torch::manual_seed(8);
  const LlamaOptions& options = GetParam().options;
  const at::Tensor tokens = test::random_tokens(3, 9);
  Model model = make_llama(options, 9);
  {
    const torch::NoGradGuard no_grad;  // larger matrices than at the beginning tell more
    for (const auto& parameter : model.parameters()) {
      parameter.mul_(parameter.dim() == 2 ? 10 : 1).add_(torch::randn_like(parameter) * 0.1);
    }
    if (options.tied) model.parameters().back().copy_(model.parameters().front());
  }
  save_model(dir / "weights.safetensors", model);
  write_safetensors(dir / "tokens.safetensors", {{{"tokens", tokens}}, {}});
  const auto& [factor, low, high, context] = options.scaling;
  const int64_t head_size = options.head_size > 0 ? options.head_size : options.width / options.heads;
  const json config = {{"layers", options.layers},
                       {"heads", options.heads},
                       {"kv_heads", options.kv_heads},
                       {"width", options.width},
                       {"hidden", options.hidden},
                       {"vocab", options.vocab},
                       {"theta", options.theta},
                       {"eps", options.eps},
                       {"tied", options.tied},
                       {"head_size", head_size},
                       {"qkv_bias", options.qkv_bias},
                       {"qk_norm", options.qk_norm},
                       {"scaling", {{"factor", factor}, {"low", low}, {"high", high}, {"context", context}}}};
  test::write_file(dir / "config.json", config.dump());
  const json reference = json::parse(test::run_torch_python("llama_reference.py", dir.path().string()));

  const at::Tensor logits = model.forward(tokens, 0, model.layers.size());
  EXPECT_LT(relative_error(logits, *read_safetensors(dir / "logits.safetensors").find("logits")), kExact);
  const at::Tensor loss = test::next_token_loss(logits, tokens);
  EXPECT_NEAR(loss.item<double>(), reference["loss"].get<double>(), kExact);
  loss.backward();
  const TensorFile expected = read_safetensors(dir / "gradients.safetensors");
  const auto parameters = model.named_parameters();
  if (options.tied) parameters.front().second.mutable_grad() += parameters.back().second.grad();
  ASSERT_EQ(parameters.size(), expected.tensors.size() + (options.tied ? 1 : 0));
  for (const auto& [name, gradient] : expected.tensors) {
    const auto found = std::ranges::find(parameters, name, [](const auto& entry) { return entry.first; });
    ASSERT_NE(found, parameters.end()) << name;
    EXPECT_GT(gradient.abs().max().item<double>(), 1e-5) << name;
    EXPECT_LT(relative_error(found->second.grad(), gradient), kExact) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, LlamaReference,
                         testing::Values(Variant{"tied", test::tiny_llama(true)},
                                         Variant{"untied", test::tiny_llama(false)}, Variant{"qwen2", qwen2()},
                                         Variant{"qwen3", qwen3()}, Variant{"llama3", llama3()}),
                         [](const auto& info) { return info.param.name; });

TEST(LlamaTraining, FourStagesGiveTheBitsOfOneAndLearn) {
  for (const bool tied : {true, false}) {
    const auto trained = [&](const std::vector<std::string>& cuts) {
      torch::manual_seed(11);
      TrainerOptions options = test::token_options();
      options.cuts = cuts;
      options.train.epochs = 6;
      Trainer trainer(make_llama(test::tiny_llama(tied), test::kBlock), options);
      test::Observer observer;
      EXPECT_TRUE(trainer.train(test::token_splits(), observer));
      return test::Trained{test::copy_of(trainer.collect_model()), observer.epochs};
    };
    const auto whole = trained({});
    const auto stages = trained({"embed", "layers.0", "layers.1"});
    test::expect_equal(stages.state, whole.state);
    EXPECT_EQ(stages.epochs[5].train.loss, whole.epochs[5].train.loss);
    EXPECT_LT(whole.epochs[5].train.loss, 0.9 * whole.epochs[0].train.loss);
  }
}

TEST(LlamaTraining, Bfloat16TrainsWithNormsOfQueriesAndKeys) {
  const auto loss_of = [](const std::string& precision) {
    torch::manual_seed(11);
    TrainerOptions options = test::token_options();
    options.cuts = {"layers.0"};
    options.train.precision = precision;
    Trainer trainer(make_llama(qwen3(), test::kBlock), options);
    test::Observer observer;
    EXPECT_TRUE(trainer.train(test::token_splits(), observer));
    return observer.epochs.back().test->off.loss;
  };
  const double full = loss_of("fp32");
  const double half = loss_of("bf16");
  EXPECT_NE(half, full);
  EXPECT_NEAR(half, full, 0.05);
}

TEST(LlamaFile, OlderFilesHaveTheFrequenciesBesides) {
  const test::TempDir dir;
  const Model model = make_llama(test::tiny_llama(false), 8);
  TensorFile file = weights_of(model);
  file.tensors.emplace_back("model.layers.0.self_attn.rotary_emb.inv_freq", torch::ones({3}));
  write_safetensors(dir / "old.safetensors", file);
  Model other = make_llama(test::tiny_llama(false), 8);
  load_model(dir / "old.safetensors", other);
  test::expect_equal(test::copy_of(other), test::copy_of(model));
}

}  // namespace
}  // namespace strait
