// A codec that is in no list, handed in as an object.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "strait/boundary/boundary.h"

namespace strait {
namespace {

/// Whole numbers, as bytes: rounds to the nearest of -128 to 127.
class WholeNumbers : public Codec {
 public:
  WholeNumbers() : Codec({kFirstOwnId + 1, "whole_numbers"}) {}
  bool is_row_wise() const override { return true; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override { return {meta.elements(), true}; }
  void do_encode(std::span<const float> x, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    for (const float value : x) {
      if (!(std::abs(value) < 127)) throw NumericError("{} is no byte", value);
      out.put(static_cast<int8_t>(std::nearbyint(value)));
    }
  }
  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    for (float& value : out) value = in.get<int8_t>();
  }
};

TEST(OwnCodec, GivesBytesAsATensorAndTakesThem) {
  const WholeNumbers codec;
  const at::Tensor x = at::tensor({1.2F, -3.7F, 100.0F}).view({1, 3});
  const at::Tensor payload = codec.encode(x);
  EXPECT_EQ(payload.scalar_type(), at::kByte);
  EXPECT_EQ(payload.sizes(), at::IntArrayRef({3}));
  EXPECT_EQ(payload[1].item<uint8_t>(), 252) << "-4";
  EXPECT_TRUE(at::equal(codec.decode(payload, meta_of(x)), x.round()));
  EXPECT_TRUE(at::equal(codec.reconstruct(x, {}), x.round()));
  EXPECT_THROW(codec.decode(payload.narrow(0, 0, 2), meta_of(x)), WireError);
  EXPECT_THROW(codec.decode(x.view({3}), meta_of(x)), InternalError) << "float32 is no payload";
}

/// In training with its feedback's state, and in every mode of evaluation.
TEST(OwnCodec, CrossesABoundaryInEveryMode) {
  const auto codec = std::make_shared<const WholeNumbers>();
  BoundaryEndpoints cut("cut", 0, {make_link(codec, "ef"), make_link(codec)}, 0, {});
  const at::Tensor x = at::full({2, 3}, 0.4F);
  const auto send = [&](MessageMode mode) { return cut.activations.cross(x, {}, mode)[0][0].item<float>(); };
  EXPECT_EQ(send({}), 0);  // what is left is 0.4
  EXPECT_EQ(send({.training = false}), 0) << "the bare codec";
  EXPECT_EQ(send({.training = false, .evaluation = EvaluationMode::frozen}), 1) << "0.8";
  EXPECT_EQ(send({.training = false, .compressed = false}), 0.4F);
  EXPECT_EQ(send({}), 1);
}

/// Fails as a device's kernel that cannot be launched.
class Failing : public WholeNumbers {
 public:
  /// Whether decoding fails, not encoding.
  bool decodes = false;

 protected:
  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    if (!decodes) throw std::runtime_error("CUDA: no kernel image\nand more");
    WholeNumbers::do_encode(x, meta, context, out);
  }
  void do_decode(ByteReader& /*in*/, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> /*out*/) const override {
    throw std::runtime_error("CUDA: no kernel image\nand more");
  }
};

TEST(OwnCodec, IsNamedWithItsBoundaryWhereItFails) {
  for (const bool decodes : {false, true}) {
    const auto codec = std::make_shared<Failing>();
    codec->decodes = decodes;
    BoundaryEndpoints cut("cut", 0, {make_link(codec), make_link(codec)}, 0, {});
    try {
      cut.activations.cross(at::full({2, 3}, 1.0F), {}, {});
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(),
                   "boundary cut, activation, micro-batch 0, step 0: codec whole_numbers, message of [2, 3] on "
                   "cpu: CUDA: no kernel image");
    }
  }
}

}  // namespace
}  // namespace strait
