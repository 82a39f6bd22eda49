// Training on files of one's own: tensors, and folders of pictures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/TensorOperators.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "strait/formats/safetensors.h"
#include "tests/support/process.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OwnData : public testing::Test {
 protected:
  test::ProcessResult train(const std::string& out, std::vector<std::string> settings) const {
    std::vector<std::string> arguments = {"train", config_, "--out", dir_ / out};
    for (auto& setting : settings) arguments.insert(arguments.end(), {"--set", std::move(setting)});
    return test::run_process(STRAIT_PROGRAM, arguments);
  }

  /// The run ended, its loss fell, and its weights give the same scores again.
  void expect_learns(const std::string& out, const std::vector<std::string>& settings) const {
    const auto result = train(out, settings);
    ASSERT_EQ(result.status, 0) << result.err;
    const auto metrics = test::metrics_of(dir_ / out);
    ASSERT_EQ(metrics.size(), 6U);
    EXPECT_LT(metrics[5]["train_loss"].get<double>(), 0.7 * metrics[0]["train_loss"].get<double>()) << out;
    EXPECT_GT(metrics[5]["boundaries"][0]["activations"]["ratio"].get<double>(), 2);
    const auto scored = test::run_process(STRAIT_PROGRAM, {"eval", dir_ / out / "config.toml", "--weights",
                                                           dir_ / out / "model.safetensors", "--json"});
    ASSERT_EQ(scored.status, 0) << scored.err;
    EXPECT_EQ(nlohmann::json::parse(scored.out)["off"]["loss"], metrics[5]["test"]["off"]["loss"]);
  }

  void write_config(const std::string& kind) const {
    test::write_file(config_,
                     "[data]\nkind = \"" + kind + "\"\nroot = \"" + dir_.path().string() +
                         "\"\nbatch_size = 4\n[train]\nepochs = 6\nthreads = 1\n"
                         "optimizer = { kind = \"adamw\", lr = 0.01 }\n[compression]\n"
                         "activations = { codec = \"quant:8\" }\ngradients = { codec = \"quant:8\" }\n");
  }

  test::TempDir dir_;
  std::string config_ = dir_ / "own.toml";
};

TEST_F(OwnData, APerceptronLearnsTensors) {
  write_config("tensors");
  const auto write = [&](const char* name, int64_t samples) {
    const at::Tensor inputs = at::randn({samples, 2, 3});
    write_safetensors(dir_ / name,
                      {{{"inputs", inputs}, {"targets", inputs.sum({1, 2}).gt(0).to(at::kLong)}}, {}});
  };
  write("train.safetensors", 40);
  write("test.safetensors", 8);
  expect_learns("run", {"model.kind=mlp", "model.width=24", "data.train_file=train.safetensors",
                        "data.test_file=test.safetensors"});

  const auto convolution = train(
      "none", {"model.kind=resnet18", "data.train_file=train.safetensors", "data.test_file=test.safetensors"});
  EXPECT_EQ(convolution.status, 2);
  EXPECT_THAT(
      convolution.err,
      HasSubstr("model.kind: expected pictures, [channels, rows, columns], found samples of shape [2, 3]"));
}

/// The mean squared error of a perceptron's weights, in plain ATen.
double squared_error(const fs::path& weights, const at::Tensor& inputs, const at::Tensor& targets) {
  const TensorFile file = read_safetensors(weights);
  const auto layer = [&](const at::Tensor& x, const std::string& name) {
    return x.matmul(file.find(name + ".weight")->t()) + *file.find(name + ".bias");
  };
  const at::Tensor hidden = layer(inputs.flatten(1), "hidden.0").clamp_min(0);
  const at::Tensor output = layer(layer(hidden, "hidden.1").clamp_min(0), "head");
  return (output - targets).square().mean().item<double>();
}

TEST_F(OwnData, APerceptronLearnsNumbers) {
  write_config("tensors");
  const auto write = [&](const char* name, int64_t samples) {
    const at::Tensor inputs = at::randn({samples, 2, 3});
    const at::Tensor targets = at::stack({inputs.sum({1, 2}), inputs.select(1, 0).select(1, 0) - 1}, 1);
    write_safetensors(dir_ / name, {{{"inputs", inputs}, {"targets", targets}}, {}});
    return std::pair(inputs, targets);
  };
  write("train.safetensors", 40);
  const auto [inputs, targets] = write("test.safetensors", 8);
  const std::vector<std::string> settings = {"model.kind=mlp", "model.width=24",
                                             "data.train_file=train.safetensors",
                                             "data.test_file=test.safetensors"};
  expect_learns("all/run", settings);
  const auto last = test::metrics_of(dir_ / "all/run").back();
  EXPECT_NEAR(last["test"]["off"]["loss"].get<double>(),
              squared_error(dir_ / "all/run/model.safetensors", inputs, targets), 1e-5);
  EXPECT_FALSE(last.contains("train_accuracy"));
  EXPECT_FALSE(last["test"]["off"].contains("accuracy"));

  const auto soonest = test::run_process(
      STRAIT_PROGRAM, {"frontier", dir_ / "all", "--network", "1Mbps,1ms", "--target", "loss=100"});
  EXPECT_EQ(soonest.status, 0) << soonest.err;
  const auto table = test::run_process(STRAIT_PROGRAM, {"report", dir_ / "all", "--out", dir_ / "page.html"});
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(test::read_file(dir_ / "page.md"), HasSubstr("Best loss"));

  test::write_file(dir_ / "sweep.toml", "name = \"sweep\"\n" + test::read_file(config_) +
                                            "[[variants]]\nname = \"mine\"\nmodel.kind = \"mlp\"\n"
                                            "data.train_file = \"train.safetensors\"\n"
                                            "data.test_file = \"test.safetensors\"\n");
  const auto swept = test::run_process(STRAIT_PROGRAM, {"sweep", dir_ / "sweep.toml", "--out", dir_ / "swept"});
  ASSERT_EQ(swept.status, 0) << swept.err;
  EXPECT_THAT(swept.out,
              testing::ContainsRegex("run +off loss +on loss on is +train loss .*\nmine +[0-9.]+ +"));
}

TEST_F(OwnData, ARunGoesOnWithItsFilesInAnotherPlace) {
  write_config("tensors");
  const at::Tensor inputs = at::randn({40, 6});
  for (const char* name : {"train.safetensors", "test.safetensors", "moved.safetensors"}) {
    write_safetensors(dir_ / name, {{{"inputs", inputs}, {"targets", inputs.sum(1).gt(0).to(at::kLong)}}, {}});
  }
  std::vector<std::string> settings = {"model.kind=mlp", "data.test_file=test.safetensors",
                                       "data.train_file=train.safetensors", "train.epochs=1"};
  ASSERT_EQ(train("run", settings).status, 0);
  settings[2] = "data.train_file=moved.safetensors";
  settings[3] = "train.epochs=2";
  std::vector<std::string> arguments = {"train", config_, "--out", dir_ / "run", "--resume"};
  for (const auto& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
  const auto resumed = test::run_process(STRAIT_PROGRAM, arguments);
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(test::metrics_of(dir_ / "run").size(), 2U);
}

// 16-bit floats end at 65504.
TEST_F(OwnData, AutoLeavesOutACodecThatCannotSend) {
  write_config("tensors");
  const at::Tensor inputs = at::randn({40, 6}).mul(1e8);
  for (const char* name : {"train.safetensors", "test.safetensors"}) {
    write_safetensors(dir_ / name, {{{"inputs", inputs}, {"targets", inputs.sum(1).gt(0).to(at::kLong)}}, {}});
  }
  std::vector<std::string> settings = {"model.kind=mlp", "data.train_file=train.safetensors",
                                       "data.test_file=test.safetensors", "compression.gradients.codec=auto",
                                       "compression.auto.ladder=[\"fp16\", \"quant:8,scope=block:64\"]"};
  settings.emplace_back("compression.activations.codec=fp16");
  EXPECT_EQ(train("by hand", settings).status, 3);
  settings.back() = "compression.activations.codec=auto";
  const auto result = train("auto", settings);
  ASSERT_EQ(result.status, 0) << result.err;
  for (const auto& epoch : test::metrics_of(dir_ / "auto")) {
    for (const auto& choice : epoch.at("choices")) {
      for (const auto& boundary : choice.at("boundaries"))
        EXPECT_EQ(boundary.at("activations").at("codec"), "quant:8,scope=block:64");
    }
  }
}

TEST_F(OwnData, NetworksLearnAFolderOfPictures) {
  write_config("images");
  const fs::path pictures = fs::absolute("tests/golden/pictures");
  const auto add = [&](const std::string& folder, const std::vector<std::string>& files) {
    fs::create_directories(dir_ / folder);
    for (const auto& file : files) fs::copy_file(pictures / file, dir_ / folder / file);
  };
  add("train/colour", {"rgb.png", "rgba.png", "interlaced.png", "rgb.jpg", "progressive.jpg"});
  add("train/grey", {"grey.png", "bits.png", "grey-alpha.png", "grey.jpg", "deep.png"});
  add("test/colour", {"palette.png"});
  add("test/grey", {"grey.png"});
  expect_learns("mlp", {"model.kind=mlp", "model.width=64", "data.size=16"});
  expect_learns("resnet18", {"model.width=4", "data.size=24", "model.cuts=[\"layer2\"]"});
  EXPECT_THAT(test::read_file(dir_ / "mlp/config.toml"), HasSubstr("std = [0.229, 0.224, 0.225]"));

  test::write_file(dir_ / "train/grey/broken.jpg", "\xff\xd8\xff");
  const auto broken = train("broken", {"model.kind=mlp"});
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.err, HasSubstr((dir_ / "train/grey/broken.jpg").string() + ": is not a sound JPEG file"));
}

}  // namespace
}  // namespace strait
