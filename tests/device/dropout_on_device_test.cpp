#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/rng_scope.h"
#include "strait/models/attention.h"
#include "strait/models/dropout.h"
#include "tests/device/fake_device.h"

namespace strait {
namespace {

/// What `work` gives of tensors of these shapes on the device, and whether that is what it gives on the CPU.
template <class Work>
void expect_alike(const std::vector<std::vector<int64_t>>& shapes, const Work& work) {
  const RngScope scope({.seed = 4, .step = 6, .first_row = 2});
  torch::manual_seed(1);
  std::vector<at::Tensor> here;
  std::vector<at::Tensor> there;
  for (const auto& shape : shapes) {
    here.push_back(torch::randn(shape));
    there.push_back(here.back().to(fake::device()));
  }
  const at::Tensor expected = work(here);
  fake::take_bytes_to_host();
  const at::Tensor result = work(there);
  EXPECT_EQ(fake::take_bytes_to_host(), 0U) << "the masks are made there";
  EXPECT_TRUE(at::equal(result.cpu(), expected));
}

TEST(DropoutOnDevice, DropsWhatTheCpuDrops) {
  fake::take_races();
  for (const auto& shape : {std::vector<int64_t>{3, 5, 7}, {4, 1}, {2, 8, 16, 3}}) {
    expect_alike({shape}, [](const auto& x) { return strait::dropout(x[0], 0.3, 4); });
  }
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

TEST(DropoutOnDevice, DropsTheSameAttentionWeights) {
  fake::take_races();
  const std::vector<int64_t> shape = {2, 3, 150, 4};  // more than a block of queries
  expect_alike({shape, shape, shape}, [](const auto& x) { return causal_attention(x[0], x[1], x[2], 0.3, 4); });
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

}  // namespace
}  // namespace strait
