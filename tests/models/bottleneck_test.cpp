#include "strait/models/bottleneck.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "strait/base/error.h"
#include "strait/models/kinds.h"
#include "strait/models/layer.h"

namespace strait {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;

/// A kind with small settings, two cuts and the key `bottleneck`.
struct NarrowedNetwork {
  std::string kind;
  SettingList settings;
  std::vector<std::string> cuts;
  SampleForm samples;
  std::vector<int64_t> widths;  ///< channels behind the cuts
};

std::vector<NarrowedNetwork> narrowed_networks() {
  const SampleForm picture{.shape = {3, 8, 8}, .outputs = 5};
  return {{"mlp", {{"width", 12}, {"layers", 3}}, {"hidden.0", "hidden.1"}, picture, {12, 12}},
          {"resnet18", {{"width", 6}}, {"layer1.0", "layer2"}, picture, {6, 12}},
          {"gpt2",
           {{"width", 12}, {"layers", 3}, {"heads", 3}, {"vocab", 19}},
           {"embed", "h.1"},
           {.shape = {7}},
           {12, 12}},
          {"llama",
           {{"width", 12}, {"layers", 3}, {"heads", 3}, {"kv_heads", 1}, {"hidden", 20}, {"vocab", 19}},
           {"embed", "layers.1"},
           {.shape = {7}},
           {12, 12}}};
}

Model with_channels(const NarrowedNetwork& of, int64_t channels) {
  ModelOptions options(of.kind, of.settings);
  options.cuts = of.cuts;
  options.settings.set("bottleneck", channels);
  torch::manual_seed(5);
  return make_model(options, of.samples);
}

at::Tensor input_for(const NarrowedNetwork& of) {
  if (of.samples.outputs == 0) return torch::randint(19, {2, of.samples.shape[0]}, torch::kLong);
  return torch::randn({2, 3, 8, 8});
}

std::map<std::string, at::Tensor> weights_by_name(const Model& model) {
  const auto state = model.state();
  return {state.begin(), state.end()};
}

/// Index of the channels in a tensor with the batch dimension, over which the map goes.
at::Tensor channels_mapped(const at::Tensor& x, const at::Tensor& weight) {
  return x.dim() == 4 ? torch::einsum("oc,bchw->bohw", {weight, x})
                      : torch::einsum("oc,...c->...o", {weight, x});
}

TEST(Bottleneck, NarrowsWhatCrossesInEveryKindOfNetwork) {
  for (const NarrowedNetwork& each : narrowed_networks()) {
    Model model = with_channels(each, 4);
    const Shapes free_shapes = [&] {
      Model free = with_channels(each, 0);
      return boundary_shapes(free, cut_into_stages(free, each.cuts));
    }();
    Shapes expected = free_shapes;
    for (auto& shape : expected) (shape.size() == 3 ? shape.front() : shape.back()) = 4;
    EXPECT_EQ(boundary_shapes(model, cut_into_stages(model, each.cuts)), expected) << each.kind;
    for (const auto& parameter : model.parameters()) EXPECT_TRUE(parameter.is_leaf()) << each.kind;
  }
}

TEST(Bottleneck, IsTheFreeNetworkWithTwoProductsAtEachCut) {
  for (const NarrowedNetwork& each : narrowed_networks()) {
    Model free = with_channels(each, 0);
    Model model = with_channels(each, 4);
    free.train(false);
    model.train(false);
    const auto weights = weights_by_name(model);
    const at::Tensor input = input_for(each);
    at::Tensor x = input;
    const auto stages = cut_into_stages(free, each.cuts);
    for (size_t i = 0; i < stages.size(); ++i) {
      x = free.forward(x, stages[i].begin, stages[i].end);
      if (i == each.cuts.size()) break;
      x = channels_mapped(channels_mapped(x, weights.at(each.cuts[i] + ".encoder.weight")),
                          weights.at(each.cuts[i] + ".decoder.weight"));
    }
    EXPECT_TRUE(at::allclose(model.forward(input, 0, model.layers.size()), x, 1e-4, 1e-5)) << each.kind;
  }
}

TEST(Bottleneck, BeginsAsAProjectionAndLeavesTheOtherWeightsAsTheyAre) {
  for (const NarrowedNetwork& each : narrowed_networks()) {
    auto weights = weights_by_name(with_channels(each, 4));
    for (size_t i = 0; i < each.cuts.size(); ++i) {
      const at::Tensor encoder = weights.at(each.cuts[i] + ".encoder.weight");
      const at::Tensor decoder = weights.at(each.cuts[i] + ".decoder.weight");
      EXPECT_EQ(encoder.sizes(), (std::vector<int64_t>{4, each.widths[i]})) << each.kind;
      EXPECT_TRUE(at::allclose(encoder.matmul(encoder.t()), torch::eye(4), 1e-5, 1e-6)) << each.kind;
      EXPECT_TRUE(at::equal(decoder, encoder.t())) << each.kind;
      weights.erase(each.cuts[i] + ".encoder.weight");
      weights.erase(each.cuts[i] + ".decoder.weight");
    }
    const auto free = weights_by_name(with_channels(each, 0));
    EXPECT_EQ(free.size(), weights.size()) << each.kind;
    for (const auto& [name, value] : free) EXPECT_TRUE(at::equal(weights.at(name), value)) << name;
  }
}

TEST(Bottleneck, OfAsManyChannelsAsThereAreIsTheFreeNetwork) {
  for (const NarrowedNetwork& each : narrowed_networks()) {
    Model model = with_channels(each, each.widths.front());
    Model free = with_channels(each, 0);
    const bool narrower = each.widths.front() < each.widths.back();
    EXPECT_EQ(model.layers.size(), free.layers.size() + (narrower ? 2 : 0)) << each.kind;
    if (narrower) continue;
    const at::Tensor input = input_for(each);
    EXPECT_TRUE(
        at::equal(model.forward(input, 0, model.layers.size()), free.forward(input, 0, free.layers.size())))
        << each.kind;
  }
}

TEST(Bottleneck, WiderThanWhatCrossesIsRefused) {
  try {
    with_channels(narrowed_networks()[2], 13);
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "model.bottleneck: expected at most 12, the channels behind \"embed\", found 13");
  }
  NarrowedNetwork unknown = narrowed_networks()[0];
  unknown.cuts = {"hidden.7"};
  EXPECT_THROW(with_channels(unknown, 4), InputError);
}

}  // namespace
}  // namespace strait
