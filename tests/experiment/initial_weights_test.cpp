#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/experiment/run.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::StartsWith;

TEST(InitialWeights, AreFoundBelowTheDataRoot) {
  const test::TempDir root;
  Config config;
  EXPECT_EQ(initial_weights(config), "");
  config.model = ModelOptions("gpt2");
  config.data.root = root.path().string();
  config.model.settings.set("init", "some/model.safetensors");
  std::filesystem::create_directory(root / "some");
  test::write_file(root / "some/model.safetensors", "");
  EXPECT_EQ(initial_weights(config), root / "some/model.safetensors");
}

TEST(InitialWeights, ThatAreMissingSayHowToGetThem) {
  const test::TempDir root;
  Config config;
  config.data.root = root.path().string();
  config.model = ModelOptions("gpt2", {{"init", "gpt2/model.safetensors"}});
  const auto complaint = [&] { return test::message_of<InputError>([&] { initial_weights(config); }); };
  EXPECT_EQ(
      complaint(),
      "model.init: no file gpt2/model.safetensors, here or below data.root; \"strait data get gpt2\" fetches "
      "gpt2/model.safetensors into data.root");
  config.model.settings.set("init", "other/model.safetensors");
  EXPECT_EQ(complaint(), "model.init: no file other/model.safetensors, here or below data.root");
  std::filesystem::create_symlink("loop", root / "loop");
  config.model.settings.set("init", (root / "loop").string());
  EXPECT_EQ(complaint(), (root / "loop").string() + ": cannot be read: Too many levels of symbolic links");
}

/// What is said of weights beside such a config.json; empty where they are taken.
std::string complaint_about(const ModelOptions& model, const std::string& published) {
  const test::TempDir folder;
  test::write_file(folder / "model.safetensors", "");
  test::write_file(folder / "config.json", published);
  Config config;
  config.model = model;
  config.model.settings.set("init", (folder / "model.safetensors").string());
  const std::string message = test::error_of<InputError>([&] { initial_weights(config); });
  if (message.empty()) return "";
  const std::string begin = (folder / "config.json").string() + ": ";
  EXPECT_TRUE(message.starts_with(begin)) << message;
  return message.substr(begin.size());
}

TEST(PublishedConfig, OfTheSameLlamaIsTaken) {
  const ModelOptions model("llama", {{"heads", 6}, {"theta", 500000}, {"eps", 1e-6}});
  const std::string begin = R"({"model_type": "llama", "num_attention_heads": 6, "rms_norm_eps": 1e-06, )";
  for (const char* rest : {R"("rope_theta": 500000.0, "rope_scaling": null})", R"("rope_theta": 500000})",
                           R"("rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})"}) {
    EXPECT_EQ(complaint_about(model, begin + rest), "");
  }
}

TEST(PublishedConfig, OfAnotherLlamaIsNamed) {
  const ModelOptions model("llama");
  const auto complaint = [&](const char* published) { return complaint_about(model, published); };
  EXPECT_EQ(complaint(R"({"num_attention_heads": 18})"),
            "num_attention_heads: expected model.heads = 18, found 9");
  EXPECT_EQ(complaint(R"({"rms_norm_eps": 1e-06})"), "rms_norm_eps: expected model.eps = 1e-06, found 1e-05");
  EXPECT_EQ(complaint(R"({"rope_theta": 500000})"),
            "rope_theta: expected model.theta = 500000.0, found 10000.0");
  EXPECT_THAT(complaint(R"({"rope_parameters": {"rope_theta": 5e5}})"),
              StartsWith("rope_parameters/rope_theta: expected model.theta = 500000.0, found"));
  const std::string scaling =
      R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}})";
  EXPECT_EQ(complaint(("{" + scaling).c_str()),
            "rope_scaling/factor: expected model.rope_factor = 8.0, found 1.0");
  EXPECT_EQ(complaint((R"({"rope_parameters": {"rope_type": "yarn"}, )" + scaling).c_str()),
            "rope_scaling/factor: expected model.rope_factor = 8.0, found 1.0");
  EXPECT_THAT(complaint(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}})"),
              StartsWith("rope_scaling/low_freq_factor is null, expected a number > 0"));
  EXPECT_EQ(complaint(R"({"rope_scaling": {"type": "linear"}})"),
            "rope_scaling/type is \"linear\", expected \"default\" or \"llama3\" for the network that model "
            "describes");
  EXPECT_EQ(complaint(R"({"model_type": "qwen2"})"), "model_type: expected model.qkv_bias = true, found false");
  EXPECT_THAT(complaint(R"({"model_type": "gemma"})"),
              StartsWith("model_type is \"gemma\", expected \"llama\", \"mistral\", \"qwen2\" or \"qwen3\""));
  EXPECT_THAT(complaint("{"), StartsWith("is not JSON"));
}

TEST(PublishedConfig, OfAnotherGpt2IsNamed) {
  const ModelOptions model("gpt2");
  const auto complaint = [&](const char* published) { return complaint_about(model, published); };
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "n_head": 12, "activation_function": "gelu_pytorch_tanh",
                          "layer_norm_epsilon": 1e-05, "scale_attn_weights": true})"),
            "");
  EXPECT_EQ(complaint("[]"), "is a JSON array, expected an object");
  EXPECT_THAT(complaint(R"({"n_head": 16})"), StartsWith("n_head: expected model.heads = 16, found 12"));
  EXPECT_THAT(complaint(R"({"activation_function": "gelu"})"),
              StartsWith("activation_function is \"gelu\", expected \"gelu_new\" or \"gelu_pytorch_tanh\""));
  EXPECT_THAT(complaint(R"({"scale_attn_weights": 1})"), StartsWith("scale_attn_weights is 1, expected true"));
  EXPECT_THAT(complaint(R"({"scale_attn_by_inverse_layer_idx": true})"),
              StartsWith("scale_attn_by_inverse_layer_idx is true, expected false"));
}

}  // namespace
}  // namespace strait
