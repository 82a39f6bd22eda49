#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "strait/codecs/device_payload.h"
#include "tests/device/devices.h"

namespace strait {
namespace {

std::vector<std::byte> bytes_from(int first, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + static_cast<int>(i % 50));
  return bytes;
}

std::vector<std::byte> bytes_of(const at::Tensor& payload) {
  std::vector<std::byte> bytes(static_cast<size_t>(payload.numel()));
  std::memcpy(bytes.data(), payload.cpu().data_ptr(), bytes.size());
  return bytes;
}

class PayloadOnDevice : public testing::Test {
 protected:
  at::Tensor there(const std::vector<std::byte>& bytes) const {
    return bytes_on_device(bytes.size(), device_,
                           [&](std::span<std::byte> to) { std::ranges::copy(bytes, to.begin()); });
  }

  const at::Device device_ = test::device();
};

/// Messages share the memory through which they are copied, and what is copied is late.
TEST_F(PayloadOnDevice, IsThereBeforeTheNextOneIsTaken) {
  const auto first = bytes_from(1, 700);
  const auto second = bytes_from(100, 300);
  const at::Tensor a = there(first);
  const at::Tensor b = there(second);
  EXPECT_EQ(bytes_of(a), first);
  EXPECT_EQ(bytes_of(b), second);
}

TEST_F(PayloadOnDevice, IsWrittenWhenItIsCopied) {
  const auto bytes = bytes_from(3, 500);
  const at::Tensor payload = there(bytes);
  EXPECT_TRUE(std::ranges::equal(bytes_on_host(payload), bytes));
  EXPECT_TRUE(bytes_on_host(payload.narrow(0, 0, 0)).empty());
  EXPECT_TRUE(std::ranges::equal(bytes_on_host(payload.narrow(0, 10, 20)), std::span(bytes).subspan(10, 20)));
}

}  // namespace
}  // namespace strait
