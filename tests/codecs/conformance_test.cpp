// What holds for every codec, run over every sample spec of codec_list.def.

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "strait/codecs/composed.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

const MessageContext kContext{
    .seed = 5, .boundary = 1, .direction = Direction::gradient, .step = 12, .micro_batch = 2, .first_row = 8};

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<const Codec> codec_ = make_codec(GetParam());

  /// Whether the codec takes messages of this shape.
  bool takes(const std::vector<int64_t>& shape) const {
    try {
      codec_->payload_size({shape});
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  /// x, or where the codec takes no such shape, x with its last dimension repeated up to the next multiple
  /// of 64.
  at::Tensor suited(const at::Tensor& x) const {
    if (takes(x.sizes().vec()) || x.dim() == 0) return x;
    const at::Tensor wide = at::cat(std::vector<at::Tensor>(64, x), -1);
    return wide.narrow(-1, 0, (x.size(-1) + 63) / 64 * 64);
  }

  /// Whether the codec can send `x`; if not, both ways of computing must say so.
  bool sends(const at::Tensor& x) {
    if (!takes(x.sizes().vec())) {
      EXPECT_THROW(encoded(*codec_, x, kContext), InputError);
      EXPECT_THROW(codec_->reconstruct(x, kContext), InputError);
      EXPECT_THROW(decoded(*codec_, {}, meta_of(x), kContext), InputError);
      return false;
    }
    try {
      encoded(*codec_, x, kContext);
      return true;
    } catch (const NumericError&) {
      EXPECT_THROW(codec_->reconstruct(x, kContext), NumericError);
      return false;
    }
  }
};

std::vector<std::string> all_samples() {
  std::vector<std::string> samples;
  for (const auto& info : codec_list()) samples.insert(samples.end(), info.samples.begin(), info.samples.end());
  return samples;
}

TEST_P(Conformance, DecodedIsWhatReconstructPredicts) {
  size_t sent = 0;
  for (const auto& [name, input] : finite_inputs()) {
    SCOPED_TRACE(name);
    const at::Tensor x = suited(input);
    if (!sends(x)) continue;
    ++sent;
    const at::Tensor before = x.clone();
    const at::Tensor received = decoded(*codec_, encoded(*codec_, x, kContext), meta_of(x), kContext);
    const at::Tensor predicted = codec_->reconstruct(x, kContext);
    EXPECT_TRUE(same_bits(received, predicted));
    EXPECT_TRUE(are_finite(received));
    EXPECT_TRUE(same_bits(x, before)) << "the input was changed";
    EXPECT_EQ(received.sizes(), x.sizes());
    EXPECT_TRUE(received.is_contiguous());
    EXPECT_EQ(received.scalar_type(), at::kFloat);
    EXPECT_TRUE(x.numel() == 0 || predicted.data_ptr() != x.data_ptr());
  }
  EXPECT_GT(sent, 20U);
}

TEST_P(Conformance, PayloadKeepsItsBoundAndIsReproducible) {
  for (const auto& [name, input] : finite_inputs()) {
    SCOPED_TRACE(name);
    const at::Tensor x = suited(input);
    if (!sends(x)) continue;
    const auto [bound, exact] = codec_->payload_size(meta_of(x));
    const auto payload = encoded(*codec_, x, kContext);
    EXPECT_LE(payload.size(), bound);
    if (exact) {
      EXPECT_EQ(payload.size(), bound);
    }
    EXPECT_EQ(payload, encoded(*codec_, x, kContext));
    EXPECT_EQ(payload, encoded(*codec_, x.contiguous(), kContext));
  }
}

TEST_P(Conformance, WhatIsNotFiniteIsRefusedWhereverItStands) {
  for (const float bad : {INFINITY, -INFINITY, std::nanf(""), -std::nanf("")}) {
    for (const int64_t position : {0, 119, 239}) {
      const at::Tensor x = suited(normal_tensor({6, 40}, 20)).contiguous();
      x.data_ptr<float>()[position] = bad;
      EXPECT_THROW(encoded(*codec_, x, kContext), NumericError) << bad << " at " << position;
      EXPECT_THROW(codec_->reconstruct(x, kContext), NumericError) << bad << " at " << position;
    }
  }
}

TEST_P(Conformance, EveryTruncationAndAnExtraByteIsAWireError) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {3, 30}, {2, 5, 7}}) {
    const at::Tensor x = suited(normal_tensor(shape, 21));
    if (!takes(x.sizes().vec())) continue;
    auto payload = encoded(*codec_, x, kContext);
    for (size_t size = 0; size < payload.size(); ++size) {
      EXPECT_THROW(decoded(*codec_, std::span(payload).first(size), meta_of(x), kContext), WireError) << size;
    }
    payload.push_back(std::byte{0});
    EXPECT_THROW(decoded(*codec_, payload, meta_of(x), kContext), WireError);
  }
  const std::vector<std::byte> byte(1);
  EXPECT_THROW(decoded(*codec_, byte, {{0, 4}}, kContext), WireError);
}

TEST_P(Conformance, DamagedPayloadsDecodeToFiniteValuesOrAreWireErrors) {
  std::mt19937 random(22);
  const at::Tensor x = suited(normal_tensor({3, 77}, 23));
  const auto good = encoded(*codec_, x, kContext);
  for (int round = 0; round < 3000; ++round) {
    auto bad = good;
    for (size_t flips = 1 + random() % 4; flips > 0; --flips) {
      bad[random() % bad.size()] ^= static_cast<std::byte>(1U << (random() % 8));
    }
    if (round % 10 == 0) std::ranges::generate(bad, [&] { return static_cast<std::byte>(random()); });
    try {
      for (const float value : values_of(decoded(*codec_, bad, meta_of(x), kContext))) {
        ASSERT_TRUE(std::isfinite(value));
      }
    } catch (const WireError&) {
    }
  }
}

TEST_P(Conformance, DecodedDoesNotShareTheMessagesMemory) {
  const at::Tensor x = suited(normal_tensor({3, 30}, 24));
  auto payload = encoded(*codec_, x, kContext);
  const at::Tensor received = decoded(*codec_, payload, meta_of(x), kContext);
  const at::Tensor before = received.clone();
  std::ranges::fill(payload, std::byte{0xa5});
  EXPECT_TRUE(same_bits(received, before));
}

TEST_P(Conformance, OneMicroBatchOrSeveralGiveTheSameNumbers) {
  if (!codec_->is_row_wise()) return;
  const at::Tensor x = suited(normal_tensor({8, 5, 9}, 25));
  const at::Tensor whole = decoded(*codec_, encoded(*codec_, x, kContext), meta_of(x), kContext);
  std::vector<at::Tensor> parts;
  for (int64_t row = 0; row < 8; row += 2) {
    const at::Tensor part = x.narrow(0, row, 2);
    MessageContext context = kContext;
    context.micro_batch = static_cast<uint32_t>(row / 2);
    context.first_row = kContext.first_row + static_cast<size_t>(row);
    parts.push_back(decoded(*codec_, encoded(*codec_, part, context), meta_of(part), context));
    EXPECT_TRUE(same_bits(parts.back(), codec_->reconstruct(part, context)));
  }
  EXPECT_TRUE(same_bits(at::cat(parts), whole));
}

TEST_P(Conformance, FarRowsOfABatchDecodeAsPredicted) {
  MessageContext far = kContext;
  far.first_row = (size_t{1} << 32) / 40 - 1;  // the element's index passes 2^32 within the message
  const at::Tensor x = suited(normal_tensor({4, 40}, 26));
  EXPECT_TRUE(
      same_bits(decoded(*codec_, encoded(*codec_, x, far), meta_of(x), far), codec_->reconstruct(x, far)));
}

TEST(RowWise, IsEverythingButTheScopeTensor) {
  for (const char* spec : {"none", "fp16", "bf16", "quant:4,scope=sample", "quant:4,scope=block:8", "topk:0.1",
                           "sign", "onebit", "random:0.1", "columns:0.1,scope=sample", "tah:4"}) {
    EXPECT_TRUE(make_codec(spec)->is_row_wise()) << spec;
  }
  for (const char* spec : {"quant:4", "quant:4,rounding=stochastic", "topk:0.1,scope=tensor",
                           "sign,scope=tensor", "random:0.1,scope=tensor", "columns:0.1"}) {
    EXPECT_FALSE(make_codec(spec)->is_row_wise()) << spec;
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, Conformance, testing::ValuesIn(all_samples()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = std::to_string(info.index) + "_" + info.param;
                           std::ranges::replace_if(
                               name, [](char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

}  // namespace
}  // namespace strait
