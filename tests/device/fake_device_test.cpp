#include "tests/device/fake_device.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace strait::fake {
namespace {

TEST(FakeDevice, ComputesAsTheCpu) {
  const at::Tensor here = at::randn({3, 5});
  const at::Tensor there = here.to(device());
  EXPECT_TRUE(there.device() == device());
  const auto result = there.mul(2).add_(1).transpose(0, 1).matmul(there).narrow(0, 1, 2).contiguous();
  EXPECT_TRUE(result.device() == device());
  EXPECT_TRUE(at::equal(result.cpu(), here.mul(2).add_(1).transpose(0, 1).matmul(here).narrow(0, 1, 2)));
  EXPECT_EQ(take_races(), std::vector<std::string>());
}

}  // namespace
}  // namespace strait::fake
