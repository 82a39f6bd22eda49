#include <ATen/ATen.h>
#include <gtest/gtest.h>

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
  const at::Device device_ = test::device();
};

/// Messages share the memory through which they are copied, and what is copied is late.
TEST_F(PayloadOnDevice, IsThereBeforeTheNextOneIsTaken) {
  const auto first = bytes_from(1, 700);
  const auto second = bytes_from(100, 300);
  ByteReader first_in(first);
  ByteReader second_in(second);
  const at::Tensor a = take_payload(first_in, device_);
  const at::Tensor b = take_payload(second_in, device_);
  EXPECT_EQ(first_in.left(), 0U);
  EXPECT_EQ(bytes_of(a), first);
  EXPECT_EQ(bytes_of(b), second);
}

TEST_F(PayloadOnDevice, IsWrittenWhenItIsCopied) {
  const auto bytes = bytes_from(3, 500);
  ByteReader in(bytes);
  const at::Tensor payload = take_payload(in, device_);
  std::vector<std::byte> space(800);
  ByteWriter out(space);
  copy_payload(payload, out);
  copy_payload(payload.narrow(0, 0, 0), out);
  copy_payload(payload.narrow(0, 10, 20), out);
  EXPECT_EQ(out.used(), 520U);
  EXPECT_EQ(std::vector(space.begin(), space.begin() + 500), bytes);
  EXPECT_TRUE(std::equal(bytes.begin() + 10, bytes.begin() + 30, space.begin() + 500));
}

}  // namespace
}  // namespace strait
