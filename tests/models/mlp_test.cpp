#include "strait/models/mlp.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/error.h"
#include "strait/models/kinds.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

TEST(Mlp, IsLinearLayersWithRectifiersBetweenThem) {
  torch::manual_seed(3);
  const Model model = make_mlp(5, 2, {3, 2, 2}, 4);
  std::vector<std::string> names;
  std::vector<at::Tensor> values;
  for (const auto& [name, value] : model.state()) {
    names.push_back(name);
    values.push_back(value);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"hidden.0.weight", "hidden.0.bias", "hidden.1.weight",
                                             "hidden.1.bias", "head.weight", "head.bias"}));
  const at::Tensor x = torch::randn({7, 3, 2, 2});
  const at::Tensor first = (x.reshape({7, 12}).matmul(values[0].t()) + values[1]).clamp_min(0);
  const at::Tensor second = (first.matmul(values[2].t()) + values[3]).clamp_min(0);
  const at::Tensor expected = second.matmul(values[4].t()) + values[5];
  EXPECT_TRUE(at::allclose(model.forward(x, 0, 3), expected, 1e-5, 1e-6));
  EXPECT_TRUE(expected.lt(0).any().item<bool>()) << "the head is not rectified";
}

TEST(Mlp, IsMadeOfItsSettingsForAnySamples) {
  const ModelOptions options("mlp", {{"width", 6}, {"layers", 3}});
  Model model = make_model(options, {.shape = {11}, .outputs = 3});
  EXPECT_EQ(model.layers.size(), 4U);
  EXPECT_EQ(boundary_shapes(model, cut_into_stages(model, {"hidden.0", "hidden"})),
            (std::vector<std::vector<int64_t>>{{6}, {6}}));
  EXPECT_EQ(model.forward(torch::zeros({2, 11}), 0, 4).sizes(), (std::vector<int64_t>{2, 3}));
}

TEST(ModelKinds, EachMakesANetworkThatItsOwnCutsFit) {
  for (const auto& kind : model_kinds()) {
    ModelOptions options(kind.name);
    for (const char* small : {"width", "hidden"}) {
      if (options.settings.has(small)) options.settings.set(small, 36);
    }
    if (options.settings.has("heads")) options.settings.set("vocab", 50);
    if (kind.name == "llama") options.settings.set("heads", 6);
    const SampleForm samples =
        kind.reads_tokens ? SampleForm{.shape = {4}} : SampleForm{.shape = {3, 32, 32}, .outputs = 7};
    const Model model = make_model(options, samples);
    EXPECT_EQ(model.sample_shape, samples.shape) << kind.name;
    const auto expect_parameters = [&](const Model& made) {
      double numbers = 0;
      for (const at::Tensor& parameter : made.parameters()) numbers += static_cast<double>(parameter.numel());
      EXPECT_EQ(kind.parameters(options.settings, samples), numbers) << kind.name;
    };
    expect_parameters(model);
    if (!options.settings.has("subspace")) continue;
    options.settings.set("subspace", 8);
    expect_parameters(make_model(options, samples));
    EXPECT_EQ(cut_into_stages(model, kind.cuts).size(), kind.cuts.size() + 1) << kind.name;
  }
}

TEST(ModelKinds, ANetworkThatMemoryHasNoRoomForIsRefused) {
  for (const auto& kind : model_kinds()) {
    const SampleForm samples =
        kind.reads_tokens ? SampleForm{.shape = {4}} : SampleForm{.shape = {3, 32, 32}, .outputs = 7};
    const std::string begin = fmt::format("model: a {} of these keys has ", kind.name);
    for (const int64_t width : {int64_t{1} << 20, int64_t{1} << 60}) {
      ModelOptions options(kind.name, {{"width", width}});
      for (const char* heads : {"heads", "kv_heads"}) {
        if (options.settings.has(heads)) options.settings.set(heads, 4);
      }
      EXPECT_THAT(test::message_of<InputError>([&] { make_model(options, samples); }),
                  testing::StartsWith(begin));
    }
  }
}

}  // namespace
}  // namespace strait
