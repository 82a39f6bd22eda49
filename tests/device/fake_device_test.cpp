#include "tests/device/fake_device.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
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

/// A stream that is not the default one.
c10::Stream other_stream() {
  return c10::impl::VirtualGuardImpl(device().type()).getStreamFromGlobalPool(device());
}

TEST(FakeDevice, ItsMemoryIsNotTheProcessors) {
  const at::Tensor there = at::ones({4}).to(device());
  EXPECT_DEATH(std::printf("%f", static_cast<double>(there.data_ptr<float>()[0])), "");
}

TEST(FakeDevice, NotesWhatAnotherStreamReadsTooEarly) {
  take_races();
  const at::Tensor x = at::ones({4}).to(device());
  const at::Tensor y = x.add(1);
  const c10::Stream other = other_stream();
  {
    const c10::StreamGuard guard(other);
    const at::Tensor z = y.mul(2);
    EXPECT_THAT(take_races(), testing::Contains(testing::HasSubstr("reads what stream 0 writes")));
  }
  take_races();
  const at::Tensor again = x.add(1);
  c10::Event done(device().type());
  done.record(c10::impl::VirtualGuardImpl(device().type()).getStream(device()));
  done.block(other);
  const c10::StreamGuard guard(other);
  EXPECT_TRUE(at::equal(again.mul(2).cpu(), at::full({4}, 4.0F)));
  EXPECT_EQ(take_races(), std::vector<std::string>());
}

TEST(FakeDevice, BringsWhatWasCopiedOnlyOnceItIsWaitedFor) {
  const at::Tensor x = at::arange(5, at::kFloat);
  const at::Tensor here = at::empty({5}, at::TensorOptions(at::kFloat).pinned_memory(true));
  ASSERT_TRUE(is_pinned(here));
  take_bytes_to_host();
  const at::Tensor there = x.to(device());
  here.copy_(there, /*non_blocking=*/true);
  EXPECT_EQ(take_bytes_to_host(), 5 * sizeof(float));
  EXPECT_FALSE(at::equal(here, x));
  c10::Event done(device().type());
  done.record(c10::impl::VirtualGuardImpl(device().type()).getStream(device()));
  EXPECT_FALSE(at::equal(here, x));
  done.synchronize();
  EXPECT_TRUE(at::equal(here, x));
}

}  // namespace
}  // namespace strait::fake
