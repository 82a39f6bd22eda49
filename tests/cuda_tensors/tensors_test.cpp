// The CUDA kernels as codecs and links on a device call them: the bytes, tensors and states are the CPU's.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "strait/base/error.h"
#include "tests/codecs/inputs.h"
#include "tests/cuda_tensors/emulated_kernels.h"
#include "tests/device/fake_device.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

const MessageContext kTensorContext{.seed = 7, .boundary = 1, .step = 11, .first_row = 5};

class CudaCodec : public testing::TestWithParam<std::string> {
 protected:
  EmulatedKernels kernels_;
  std::shared_ptr<const Codec> codec_ = make_codec(GetParam());
};

TEST_P(CudaCodec, WritesAndReadsAsOnTheCpu) {
  for (const auto& [name, input] : finite_inputs()) {
    SCOPED_TRACE(name);
    const MessageMeta meta = meta_of(input);
    std::optional<at::Tensor> expected;
    try {
      expected = codec_->encode(input, kTensorContext);
    } catch (const InputError&) {  // it takes no such shape
      continue;
    } catch (const NumericError&) {
      EXPECT_THROW(codec_->encode(input.to(fake::device()), kTensorContext), NumericError);
      continue;
    }
    kernels_.take_calls();
    const at::Tensor message = codec_->encode(input.to(fake::device()), kTensorContext);
    ASSERT_TRUE(at::equal(message.cpu(), *expected));
    const int writes = kernels_.take_calls();
    // All but what is empty, and short rows of topk, of which everything is kept.
    EXPECT_TRUE(writes == 1 || meta.elements() == 0 || GetParam().starts_with("topk"));
    const at::Tensor seen = codec_->decode(message, meta, kTensorContext);
    EXPECT_TRUE(same_bits(seen.cpu(), codec_->decode(*expected, meta, kTensorContext)));
    EXPECT_EQ(kernels_.take_calls(), writes);
  }
  codec_->encode(normal_tensor({6, 64}, 20).to(fake::device()), kTensorContext);
  EXPECT_EQ(kernels_.take_calls(), 1);
}

TEST_P(CudaCodec, RefusesAValueThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const at::Tensor x = normal_tensor({6, 64}, 20).contiguous();
    x.data_ptr<float>()[200] = bad;
    EXPECT_THROW(codec_->encode(x.to(fake::device()), kTensorContext), NumericError);
  }
}

TEST_P(CudaCodec, ReadsBytesAsOnTheCpu) {
  const at::Tensor x = normal_tensor({3, 64}, 21);
  const MessageMeta meta = meta_of(x);
  const at::Tensor message = codec_->encode(x, kTensorContext);
  for (int64_t byte = 0; byte < message.numel(); ++byte) {
    const at::Tensor other = message.clone();
    other.data_ptr<uint8_t>()[byte] ^= 0x81;
    try {
      const at::Tensor expected = codec_->decode(other, meta, kTensorContext);
      EXPECT_TRUE(same_bits(codec_->decode(other.to(fake::device()), meta, kTensorContext).cpu(), expected))
          << byte;
    } catch (const WireError&) {
      EXPECT_THROW(codec_->decode(other.to(fake::device()), meta, kTensorContext), WireError) << byte;
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Of, CudaCodec,
    testing::Values("fp16", "bf16", "fp8:e4m3", "fp8:e5m2", "mx:int8", "mx:e2m1", "quant:1", "quant:2",
                    "quant:3,scope=sample", "quant:4,scope=channel", "quant:5,scope=block:64", "quant:8",
                    "quant:4,rounding=stochastic", "quant:3,scope=block:64,rounding=stochastic",
                    "quant:4,levels=symmetric", "quant:2,scope=block:64,levels=symmetric,rounding=stochastic",
                    "quant:4,scope=block:64,rotate=hadamard", "topk:0.1,index=bitmap",
                    "topk:0.3,index=bitmap,values=fp16", "topk:0.4,index=bitmap,values=bf16",
                    "topk:0.1,index=bitmap,values=quant:8", "topk:0.5,index=bitmap,values=quant:3,scope=tensor",
                    "topk:0.2,index=bitmap,scope=block:64", "topk:0.1", "topk:0.3,index=rice,values=fp16",
                    "topk:0.1,index=interlaced", "topk:0.2,scope=block:64"),
    name_of);

void expect_same_bits(const test::State& found, const test::State& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, state] : expected) {
    EXPECT_TRUE(same_bits(found.at(name).cpu(), state.cpu())) << name;
  }
}

class CudaFeedbackOnDevice : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  EmulatedKernels kernels_;
};

TEST_P(CudaFeedbackOnDevice, SendsAndKeepsWhatTheCpuDoes) {
  const auto& [feedback, codec] = GetParam();
  test::Pair here(feedback, codec);
  test::Pair there(feedback, codec);
  for (int message = 0; message < 5; ++message) {
    at::Tensor x = normal_tensor({4, 75}, 30U + static_cast<unsigned>(message));
    if (message == 2) x = x.relu();
    MessageContext context{.seed = 3, .step = static_cast<uint64_t>(message), .first_row = 2};
    const at::Tensor expected = here.send(x, context);
    context.device = fake::device();
    kernels_.take_calls();
    const at::Tensor seen = there.send(x.to(fake::device()), context);
    EXPECT_EQ(kernels_.take_calls(), 2) << "one call writes, and one reads";
    EXPECT_TRUE(same_bits(seen.cpu(), expected)) << message;
    EXPECT_FALSE(here.encoder_state().empty());
    expect_same_bits(there.encoder_state(), here.encoder_state());
    expect_same_bits(there.decoder_state(), here.decoder_state());
  }
}

TEST_P(CudaFeedbackOnDevice, KeepsItsStateWhereAValueIsNotFinite) {
  const auto& [feedback, codec] = GetParam();
  test::Pair there(feedback, codec);
  const at::Tensor x = normal_tensor({4, 75}, 1).contiguous();
  there.send(x.to(fake::device()), {.seed = 3, .device = fake::device()});
  const auto before = there.encoder_state();
  EXPECT_FALSE(before.empty());
  at::Tensor bad = x.clone();
  bad.data_ptr<float>()[80] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(there.send(bad.to(fake::device()), {.seed = 3, .step = 1, .device = fake::device()}),
               NumericError);
  expect_same_bits(there.encoder_state(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Of, CudaFeedbackOnDevice,
    testing::Values(std::pair("ef", "quant:4"), std::pair("ef", "quant:3,scope=sample,rounding=stochastic"),
                    std::pair("ef", "quant:2,scope=block:16"), std::pair("ef", "topk:0.1,index=bitmap"),
                    std::pair("ef", "topk:0.1"), std::pair("ef", "topk:0.2,index=bitmap,values=fp16"),
                    std::pair("ef", "topk:0.2,index=bitmap,scope=tensor"), std::pair("ef21", "quant:4"),
                    std::pair("ef21", "quant:2,scope=block:16,rounding=stochastic"),
                    std::pair("ef21", "topk:0.1,index=bitmap"), std::pair("ef21", "topk:0.1"),
                    std::pair("ef21", "topk:0.2,index=bitmap,values=bf16")));

TEST(CudaFeedback, RefusesAMessageThatNoCodecWrites) {
  const EmulatedKernels kernels;
  for (const char* codec : {"quant:4,scope=sample", "topk:0.1,index=bitmap", "topk:0.1"}) {
    const auto link = make_link(codec, "ef21");
    const MessageMeta meta{{4, 75}};
    const std::vector<std::byte> bytes(link->payload_size(meta).bound, std::byte{0xff});
    for (const size_t size : {bytes.size(), bytes.size() - 1}) {
      ByteReader in(std::span<const std::byte>(bytes).first(size));
      const auto decoder = link->make_decoder();
      EXPECT_THROW(decoder->decode(in, meta, {.device = fake::device()}), WireError) << codec << " " << size;
    }
  }
}

}  // namespace
}  // namespace strait
