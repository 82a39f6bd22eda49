// Every codec on a device against the same codec on the CPU.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/codecs/inputs.h"
#include "tests/device/devices.h"

namespace strait {
namespace {

const MessageContext kHere{
    .seed = 5, .boundary = 1, .direction = Direction::gradient, .step = 12, .micro_batch = 2, .first_row = 8};

class CodecOnDevice : public testing::TestWithParam<std::string> {
 protected:
  const at::Device device_ = test::device();
  std::shared_ptr<const Codec> codec_ = make_codec(GetParam());
};

/// The payload, or nothing where the codec does not send the tensor.
std::optional<at::Tensor> payload_of(const Codec& codec, const at::Tensor& x) {
  try {
    return codec.encode(x, kHere);
  } catch (const InputError&) {
    return std::nullopt;
  } catch (const NumericError&) {
    return std::nullopt;
  }
}

TEST_P(CodecOnDevice, GivesTheBytesAndTheTensorsOfTheCpu) {
  fake::take_races();
  int sent = 0;
  for (const auto& [name, x] : finite_inputs()) {
    SCOPED_TRACE(name);
    const at::Tensor there = x.to(device_);
    const auto expected = payload_of(*codec_, x);
    const auto payload = payload_of(*codec_, there);
    ASSERT_EQ(payload.has_value(), expected.has_value());
    if (!payload) continue;
    ++sent;
    EXPECT_TRUE(payload->device() == device_);
    EXPECT_TRUE(at::equal(payload->cpu(), *expected));
    const at::Tensor received = codec_->decode(*payload, meta_of(x), kHere);
    EXPECT_TRUE(received.device() == device_);
    EXPECT_TRUE(same_bits(received.cpu(), codec_->decode(*expected, meta_of(x), kHere)));
    EXPECT_TRUE(same_bits(codec_->reconstruct(there, kHere).cpu(), received.cpu()));
  }
  EXPECT_GT(sent, 0);
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

TEST_P(CodecOnDevice, RefusesWhatTheCpuRefuses) {
  at::Tensor x = normal_tensor({16, 128}, 7);
  x[1][3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(payload_of(*codec_, x.to(device_)).has_value(), payload_of(*codec_, x).has_value());
  const at::Tensor good = normal_tensor({16, 128}, 8);
  const auto payload = payload_of(*codec_, good);
  ASSERT_TRUE(payload.has_value());
  const at::Tensor longer = at::cat({*payload, at::zeros({1}, at::kByte)});
  EXPECT_THROW(codec_->decode(longer, meta_of(good), kHere), WireError);
  EXPECT_THROW(codec_->decode(longer.to(device_), meta_of(good), kHere), WireError);
  const at::Tensor shorter = payload->narrow(0, 0, payload->numel() - 1).clone();
  EXPECT_THROW(codec_->decode(shorter, meta_of(good), kHere), WireError);
  EXPECT_THROW(codec_->decode(shorter.to(device_), meta_of(good), kHere), WireError);
}

/// What goes to the host is the message, the numbers that say whether it can be sent, and no more.
TEST(CodecsOnDevice, SendTheMessageAndNotTheTensorToTheHost) {
  const at::Tensor x = normal_tensor({8, 3, 32, 32}, 9).to(fake::device());
  constexpr size_t kNumbers = 64;
  for (const char* spec :
       {"fp16", "mx:int8", "sign", "natural", "quant:4", "quant:2,scope=block:64",
        "quant:4,scope=block:64,spikes=1", "topk:0.1,index=bitmap", "topk:0.1", "topk:0.1,index=rice",
        "topk:0.1,index=interlaced,values=fp16", "topk:0.1,scope=block:64", "random:0.1",
        "random:0.3,scope=tensor,values=bf16", "columns:0.3", "columns:0.4,scope=sample,values=quant:4"}) {
    const auto codec = make_codec(spec);
    std::vector<std::byte> space(codec->payload_size(meta_of(x)).bound);
    ByteWriter out(space);
    fake::take_bytes_to_host();
    codec->write(x, kHere, out);
    const DeviceForm* const form = codec->device_form();
    const size_t size = form == nullptr ? space.size() : form->form_size(meta_of(x));
    EXPECT_LE(fake::take_bytes_to_host(), size + kNumbers) << spec;
    EXPECT_LT(size, static_cast<size_t>(x.numel()) * sizeof(float) * 6 / 10) << spec;
    ByteReader in(std::span<const std::byte>(space).first(out.used()));
    MessageContext there = kHere;
    there.device = fake::device();
    const at::Tensor seen = codec->read(in, meta_of(x), there).tensor;
    EXPECT_LE(fake::take_bytes_to_host(), kNumbers) << spec;
    EXPECT_TRUE(same_bits(seen.cpu(), codec->reconstruct(x.cpu(), kHere))) << spec;
  }
}

TEST(CodecsOnDevice, ReportTheIndicesThatTheCpuReports) {
  MessageContext here = kHere;
  here.wants_indices = true;
  MessageContext there = here;
  there.device = fake::device();
  for (const char* spec :
       {"topk:0.1", "topk:0.1,index=bitmap", "topk:0.3,index=rice", "topk:1", "topk:0.2,scope=tensor"}) {
    const auto codec = make_codec(spec);
    for (const auto& [name, x] : finite_inputs()) {
      if (x.numel() == 0) continue;
      SCOPED_TRACE(testing::Message() << spec << " of " << name);
      const MessageMeta meta = meta_of(x);
      std::vector<std::byte> expected(codec->payload_size(meta).bound);
      std::vector<std::byte> written(expected.size());
      ByteWriter expected_out(expected);
      ByteWriter out(written);
      const IndexSet kept = codec->write(x, here, expected_out);
      const IndexSet kept_there = codec->write(x.to(fake::device()), there, out);
      ASSERT_EQ(written, expected);
      EXPECT_EQ(kept_there.shape, kept.shape);
      EXPECT_EQ(kept_there.masks, kept.masks);
      ByteReader in(std::span<const std::byte>(written).first(out.used()));
      const Decoded seen = codec->read(in, meta, there);
      EXPECT_EQ(in.left(), 0U);
      EXPECT_EQ(seen.indices.shape, kept.shape);
      EXPECT_EQ(seen.indices.masks, kept.masks);
      EXPECT_TRUE(same_bits(seen.tensor.cpu(), codec->reconstruct(x, kHere)));
    }
  }
}

std::vector<std::string> all_specs() {
  std::vector<std::string> specs;
  for (const auto& info : codec_list()) specs.insert(specs.end(), info.samples.begin(), info.samples.end());
  return specs;
}

INSTANTIATE_TEST_SUITE_P(All, CodecOnDevice, testing::ValuesIn(all_specs()));

}  // namespace
}  // namespace strait
