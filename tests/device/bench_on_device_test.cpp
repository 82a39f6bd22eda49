#include <gtest/gtest.h>

#include "strait/planning/device_bench.h"
#include "tests/device/fake_device.h"

namespace strait {
namespace {

constexpr Repetitions kThrice{.warm_up = 1, .least = 3, .most = 3, .seconds = 0};

TEST(BenchOnDevice, CountsTheDevicesTime) {
  BenchInput input = BenchInput::drawn({4, 128}, /*relu=*/false, 4000);
  const auto codec = make_codec("fp16");
  const DeviceRates rates = bench_on_device(fake::device(), *codec, input, kThrice);
  // An operation takes a millisecond, and a copy is one.
  const double bytes = 4 * 128 * 4;
  EXPECT_DOUBLE_EQ(rates.copy_gb_s, bytes / 1e9 / 1e-3);
  EXPECT_LT(rates.encode_gb_s, rates.copy_gb_s);
  EXPECT_GT(rates.encode_gb_s, 0);
  EXPECT_DOUBLE_EQ(rates.encode_copy_ratio, rates.encode_gb_s / rates.copy_gb_s);
  EXPECT_DOUBLE_EQ(rates.decode_copy_ratio, rates.decode_gb_s / rates.copy_gb_s);
  EXPECT_EQ(rates.bits, 16);
  EXPECT_GT(rates.relative_error, 1e-5);
  EXPECT_LT(rates.relative_error, 1e-3);
}

/// fp16 whose bytes on a device are others.
class Wrong : public Codec {
 public:
  Wrong() : Codec({kFirstOwnId, "wrong"}) {}
  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override {
    return right_->device_encode(x.add(1), context);
  }
  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    return right_->reconstruct(x, context);
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override { return right_->payload_size(meta); }
  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    right_->write_elements(x, meta, context, out);
  }
  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const override {
    right_->read_elements(in, meta, context, out);
  }

 private:
  std::shared_ptr<const Codec> right_ = make_codec("fp16");
};

TEST(BenchOnDevice, NamesACodecWhoseBytesAreOthers) {
  BenchInput input = BenchInput::drawn({4, 128}, /*relu=*/false, 4000);
  try {
    bench_on_device(fake::device(), Wrong(), input, kThrice);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "codec wrong: the payload that is written on " + fake::device().str() +
                                             " differs from the CPU's");
  }
}

}  // namespace
}  // namespace strait
