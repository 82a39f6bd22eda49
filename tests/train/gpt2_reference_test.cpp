// GPT-2 held against an independent implementation in python3-torch, by files in both directions.

#include <gtest/gtest.h>

#include <torch/torch.h>
#include <nlohmann/json.hpp>

#include "strait/checkpoint/model_file.h"
#include "tests/models/tiny_gpt2.h"
#include "tests/support/python.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;

constexpr double kExact = 1e-4;

json config_of(const Gpt2Options& options) {
  return {{"layers", options.layers},   {"heads", options.heads}, {"width", options.width},
          {"context", options.context}, {"vocab", options.vocab}, {"seed", 12}};
}

/// The loss; leaves the gradients, the tied one summed into wte.weight, in the parameters.
double differentiate(Model& model, const at::Tensor& tokens) {
  const at::Tensor loss = test::next_token_loss(model.forward(tokens, 0, model.layers.size()), tokens);
  loss.backward();
  const auto parameters = model.named_parameters();
  parameters.front().second.mutable_grad() += parameters.back().second.grad();
  return loss.item<double>();
}

void expect_gradients(const Model& model, const std::filesystem::path& path) {
  const TensorFile expected = read_safetensors(path);
  const auto parameters = model.named_parameters();
  ASSERT_EQ(parameters.size(), expected.tensors.size() + 1);  // both of the tie
  for (const auto& [name, parameter] : parameters) {
    if (name == "lm_head.weight") continue;
    const at::Tensor* gradient = expected.find(name);
    ASSERT_NE(gradient, nullptr) << name;
    const auto largest = gradient->abs().max().item<double>();
    EXPECT_GT(largest, 1e-5) << name;
    EXPECT_LT((parameter.grad() - *gradient).abs().max().item<double>(), kExact * largest) << name;
  }
}

TEST(Gpt2Reference, LossAndGradientsEqualPyTorchsOnFilesOfBothSides) {
  const test::TempDir dir;
  torch::manual_seed(8);
  const Gpt2Options options = test::tiny_gpt2();
  const at::Tensor tokens = test::random_tokens(3, 9);
  Model model = make_gpt2(options, 9);
  {
    const torch::NoGradGuard no_grad;  // larger weights than at the beginning tell more
    for (const auto& parameter : model.parameters()) parameter.mul_(5).add_(torch::randn_like(parameter) * 0.1);
    model.parameters().back().copy_(model.parameters().front());
  }
  save_model(dir / "weights.safetensors", model);
  write_safetensors(dir / "tokens.safetensors", {{{"tokens", tokens}}, {}});
  test::write_file(dir / "config.json", config_of(options).dump());
  const json reference = json::parse(test::run_torch_python("gpt2_reference.py", dir.path().string()));

  EXPECT_NEAR(differentiate(model, tokens), reference["loss"].get<double>(), kExact);
  expect_gradients(model, dir / "gradients.safetensors");

  Model other = make_gpt2(options, 9);
  load_model(dir / "drawn.safetensors", other);
  EXPECT_NEAR(differentiate(other, tokens), reference["drawn_loss"].get<double>(), kExact);
  expect_gradients(other, dir / "drawn_gradients.safetensors");
}

}  // namespace
}  // namespace strait
