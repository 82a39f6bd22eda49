#include "strait/models/resnet18.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include <set>

#include "strait/base/error.h"
#include "strait/models/layer.h"

namespace strait {
namespace {

TEST(ResNet18, HasPyTorchsNamesAndTheKnownNumberOfParameters) {
  const Model model = make_resnet18(64, 10);
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  EXPECT_EQ(count, 11'173'962);  // the usual CIFAR ResNet-18
  std::set<std::string> names;
  for (const auto& [name, tensor] : model.state()) EXPECT_TRUE(names.insert(name).second) << name;
  for (const char* name :
       {"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var",
        "bn1.num_batches_tracked", "layer1.0.conv1.weight", "layer1.1.bn2.bias", "layer2.0.shortcut.0.weight",
        "layer2.0.shortcut.1.running_var", "layer4.1.conv2.weight", "linear.weight", "linear.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(names.size(), 122U);
  EXPECT_FALSE(names.contains("layer1.0.shortcut.0.weight"));
}

TEST(ResNet18, IsCutByLayerOrGroup) {
  Model model = make_resnet18(8, 10);
  const auto stages = cut_into_stages(model, {"layer1", "layer2.0", "layer3"});
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].end, 3U);  // stem, layer1.0, layer1.1
  EXPECT_EQ(stages[1].end, 4U);
  EXPECT_EQ(stages[3].end, model.layers.size());
  EXPECT_EQ(boundary_shapes(model, cut_into_stages(model, {"layer1", "layer2", "layer3"})),
            (std::vector<std::vector<int64_t>>{{8, 32, 32}, {16, 16, 16}, {32, 8, 8}}));
  EXPECT_EQ(cut_into_stages(model, {}).size(), 1U);
}

TEST(ResNet18, WrongCutsAreNamed) {
  const Model model = make_resnet18(2, 10);
  const auto message = [&](const std::vector<std::string>& cuts) -> std::string {
    try {
      cut_into_stages(model, cuts);
      return "";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  EXPECT_NE(message({"layr1"}).find("no layer \"layr1\" (did you mean \"layer1\"?)"), std::string::npos);
  EXPECT_NE(message({"layer2", "layer1"}).find("\"layer1\" does not come after"), std::string::npos);
  EXPECT_NE(message({"layer1", "layer1.1"}).find("does not come after"), std::string::npos);
  EXPECT_NE(message({"head"}).find("nothing comes after \"head\""), std::string::npos);
}

TEST(ResNet18, PicturesOfOtherSizesAreAveragedAsAWhole) {
  torch::manual_seed(5);
  Model model = make_resnet18(2, 3, {1, 24, 40});
  model.train(false);
  const torch::NoGradGuard no_grad;
  const at::Tensor features = model.forward(torch::randn({2, 1, 24, 40}), 0, model.layers.size() - 1);
  EXPECT_EQ(features.sizes(), (std::vector<int64_t>{2, 16, 3, 5}));
  const auto head = model.layers.back().layer->parameters();
  const at::Tensor expected = features.mean({2, 3}).matmul(head[0].t()) + head[1];
  EXPECT_TRUE(at::allclose(model.forward(features, model.layers.size() - 1, model.layers.size()), expected,
                           1e-5, 1e-6));
}

TEST(ResNet18, BoundaryShapesLeaveTheModelAsItWas) {
  Model model = make_resnet18(2, 10);
  std::vector<at::Tensor> before;
  for (const auto& [name, tensor] : model.state()) before.push_back(tensor.clone());
  boundary_shapes(model, cut_into_stages(model, {"layer1"}));
  const auto after = model.state();
  for (size_t i = 0; i < after.size(); ++i)
    EXPECT_TRUE(at::equal(before[i], after[i].second)) << after[i].first;
}

}  // namespace
}  // namespace strait
