// The arithmetic of the CUDA kernels with feedback, run on the CPU, sends the bytes of the links ef and ef21
// and keeps the same state, message for message.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>

#include "strait/codecs/quant_group.h"
#include "strait/kernels/cuda/range_coder.h"
#include "tests/cuda/on_host.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

using kernels::cuda::Feedback;
using kernels::cuda::Layout;
using kernels::cuda::ValueType;
namespace on_host = kernels::cuda::on_host;

constexpr size_t kSamples = 3;
constexpr size_t kRowSize = 141;
constexpr int kMessages = 6;
constexpr size_t kFirstRow = 2;  // of the batch

/// Tensors with zeros, ties and subnormal numbers.
at::Tensor message_of(int number) {
  at::Tensor x = at::randn({kSamples, kRowSize});
  if (number % 3 == 1) x = x.relu();
  if (number % 3 == 2) x = x.mul(2).round().div(2);
  x[0].mul_(number == 3 ? 1e-39F : 1.0F);
  return x;
}

std::span<float> span_over(at::Tensor& x) { return {x.data_ptr<float>(), static_cast<size_t>(x.numel())}; }

bool have_same_bits(const at::Tensor& a, const at::Tensor& b) {
  return std::memcmp(a.contiguous().data_ptr<float>(), b.contiguous().data_ptr<float>(), a.nbytes()) == 0;
}

const char* state_name(Feedback feedback) { return feedback == Feedback::ef ? "residual" : "estimate"; }

template <Feedback feedback>
void expect_link_of_quant(uint32_t bits, bool stochastic, const std::string& scope, const Layout& layout) {
  at::manual_seed(2);
  const std::string rounding = stochastic ? ",rounding=stochastic" : "";
  const std::string link = feedback == Feedback::ef ? "ef" : "ef21";
  const std::string codec = "quant:" + std::to_string(bits) + ",scope=" + scope + rounding;
  test::Pair pair(link, codec);
  at::Tensor state = at::zeros({kSamples, kRowSize});
  at::Tensor seen = at::zeros({kSamples, kRowSize});
  for (int message = 0; message < kMessages; ++message) {
    const MessageContext context{.seed = 3, .step = static_cast<uint64_t>(message), .first_row = kFirstRow};
    at::Tensor x = message_of(message);
    const auto coder = kernels::cuda::RangeCoder::of(bits, {stochastic, make_dither(context, meta_of(x))});
    std::vector<float> ranges(2 * layout.groups());
    std::vector<uint8_t> codes(layout.code_bytes(bits));
    ASSERT_EQ(on_host::encode_groups<feedback>(span_over(x), span_over(state), layout, coder, ranges.data(),
                                               std::span(codes)),
              0U);
    // With ef21 the receiver sees the estimate, moved by the message.
    ASSERT_EQ(on_host::decode_groups(ranges.data(), codes, layout, coder, feedback == Feedback::ef21,
                                     span_over(seen)),
              0U);
    const at::Tensor received = pair.send(x, context);
    EXPECT_TRUE(have_same_bits(received, seen)) << link << " " << codec << ", message " << message;
    const at::Tensor own = pair.encoder_state().at(state_name(feedback)).slice(0, kFirstRow);
    EXPECT_TRUE(have_same_bits(own, state)) << link << " " << codec;
  }
}

TEST(CudaFeedback, OfQuantIsTheLinks) {
  for (const uint32_t bits : {1U, 3U, 4U, 8U}) {
    for (const bool stochastic : {false, true}) {
      for (const auto& [scope, layout] :
           {std::pair("sample", Layout{kSamples, kRowSize, kRowSize}),
            std::pair("tensor", Layout{1, kSamples * kRowSize, kSamples * kRowSize}),
            std::pair("block:32", Layout{kSamples, kRowSize, 32})}) {
        expect_link_of_quant<Feedback::ef>(bits, stochastic, scope, layout);
        expect_link_of_quant<Feedback::ef21>(bits, stochastic, scope, layout);
      }
    }
  }
}

template <Feedback feedback>
void expect_link_of_topk(const std::string& values, ValueType type) {
  at::manual_seed(3);
  constexpr size_t k = 15;  // ceil(0.1 * 141)
  const std::string link = feedback == Feedback::ef ? "ef" : "ef21";
  test::Pair pair(link, "topk:0.1,index=bitmap,values=" + values);
  at::Tensor state = at::zeros({kSamples, kRowSize});
  at::Tensor seen = at::zeros({kSamples, kRowSize});
  std::vector<float> terms(kRowSize);
  std::vector<uint8_t> bitmap((kRowSize + 7) / 8);
  std::vector<uint8_t> list(k * value_size(type));
  for (int message = 0; message < kMessages; ++message) {
    at::Tensor x = message_of(message);
    for (size_t row = 0; row < kSamples; ++row) {
      const auto part = [&](at::Tensor& of) { return span_over(of).subspan(row * kRowSize, kRowSize); };
      ASSERT_EQ(on_host::write_largest<feedback>(part(x), part(state), terms, k, type, bitmap, list.data()),
                0U);
      ASSERT_EQ(on_host::read_sparse(bitmap, list.data(), type, k, feedback == Feedback::ef21, part(seen)), 0U);
    }
    const at::Tensor received = pair.send(x);
    EXPECT_TRUE(have_same_bits(received, seen)) << link << " " << values << ", message " << message;
    EXPECT_TRUE(have_same_bits(pair.encoder_state().at(state_name(feedback)), state)) << link << " " << values;
  }
}

TEST(CudaFeedback, OfTopkIsTheLinks) {
  for (const auto& [name, type] : {std::pair("fp32", ValueType::fp32), std::pair("fp16", ValueType::fp16),
                                   std::pair("bf16", ValueType::bf16)}) {
    expect_link_of_topk<Feedback::ef>(name, type);
    expect_link_of_topk<Feedback::ef21>(name, type);
  }
}

}  // namespace
}  // namespace strait
