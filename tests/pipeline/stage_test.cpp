// What enters and leaves a stage, whatever memory format the network likes.

#include "strait/pipeline/stage.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace strait {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

TEST(Stage, GivesContiguousTensorsToOthersAndTheNetworkItsOwnFormat) {
  bool is_gradient_channels_last = false;
  Stage stage(
      [&](const at::Tensor& x) {
        const at::Tensor y = x.contiguous(kChannelsLast) * 2;
        y.register_hook([&](const at::Tensor& gradient) {
          is_gradient_channels_last = gradient.is_contiguous(kChannelsLast);
        });
        return y;
      },
      LossFunction(), /*first=*/false);
  torch::manual_seed(4);
  const at::Tensor x = torch::randn({2, 3, 4, 5});
  const at::Tensor output = stage.forward(0, {x}).at(0);
  EXPECT_TRUE(output.is_contiguous());
  EXPECT_TRUE(output.equal(x * 2));

  const at::Tensor gradient = torch::randn({2, 3, 4, 5});
  const at::Tensor of_input = stage.backward(0, {gradient}).at(0);
  EXPECT_TRUE(is_gradient_channels_last);
  EXPECT_TRUE(of_input.is_contiguous());
  EXPECT_TRUE(of_input.equal(gradient * 2));
}

TEST(Stage, InfersContiguousTensors) {
  const Stage stage([](const at::Tensor& x) { return x.contiguous(kChannelsLast); }, LossFunction(), false);
  EXPECT_TRUE(stage.infer({torch::randn({2, 3, 4, 5})}).at(0).is_contiguous());
}

}  // namespace
}  // namespace strait
