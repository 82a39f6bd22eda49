// The forms of codecs by tensor operations against those over bytes.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "strait/base/error.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/sparsifier.h"
#include "strait/kernels/quantise.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

const MessageContext kComposedContext{
    .seed = 5, .boundary = 1, .direction = Direction::gradient, .step = 12, .micro_batch = 2, .first_row = 8};

std::span<const std::byte> bytes_of(const at::Tensor& payload) {
  return std::as_bytes(std::span(payload.data_ptr<uint8_t>(), static_cast<size_t>(payload.numel())));
}

class Composed : public testing::TestWithParam<std::string> {
 protected:
  /// The payload of what device_encode() gave.
  std::vector<std::byte> payload_of(const at::Tensor& message, const MessageMeta& meta) const {
    const auto bytes = bytes_of(message.contiguous());
    if (codec_->device_form() == nullptr) return {bytes.begin(), bytes.end()};
    EXPECT_EQ(bytes.size(), codec_->device_form()->form_size(meta));
    std::vector<std::byte> space(codec_->payload_size(meta).bound);
    ByteWriter out(space);
    codec_->device_form()->payload_of_form(bytes, meta, false, out);
    space.resize(out.used());
    return space;
  }

  /// What device_decode() gives of a payload: undefined or WireError for what it refuses.
  at::Tensor seen_of(std::span<const std::byte> payload, const MessageMeta& meta) const {
    const DeviceForm* const form = codec_->device_form();
    const size_t size = form == nullptr ? payload.size() : form->form_size(meta);
    const at::Tensor message = at::empty({static_cast<int64_t>(size)}, at::kByte);
    const auto space = std::as_writable_bytes(std::span(message.data_ptr<uint8_t>(), size));
    if (form == nullptr) {
      std::ranges::copy(payload, space.begin());
    } else {
      ByteReader in(payload);
      form->form_of_payload(in, meta, false, space);
      if (in.left() != 0) throw WireError("{} bytes are left over", in.left());
    }
    return codec_->device_decode(message, meta, kComposedContext);
  }

  std::shared_ptr<const Codec> codec_ = make_codec(GetParam());
};

TEST_P(Composed, WritesTheBytesAndReadsThem) {
  int composed = 0;
  for (const auto& [name, input] : finite_inputs()) {
    SCOPED_TRACE(name);
    const at::Tensor x = input.contiguous();
    if (x.numel() == 0) continue;
    try {
      const auto expected = encoded(*codec_, x, kComposedContext);
      const at::Tensor payload = codec_->device_encode(x, kComposedContext);
      if (!payload.defined()) continue;
      ++composed;
      ASSERT_EQ(payload.scalar_type(), at::kByte);
      ASSERT_EQ(payload.dim(), 1);
      ASSERT_EQ(payload_of(payload, meta_of(x)), expected);
      const at::Tensor seen = seen_of(expected, meta_of(x));
      ASSERT_TRUE(seen.defined());
      ASSERT_TRUE(seen.is_contiguous());
      ASSERT_TRUE(same_bits(seen, decoded(*codec_, expected, meta_of(x), kComposedContext)));
    } catch (const InputError&) {  // it takes no such shape
    } catch (const NumericError&) {
      EXPECT_ANY_THROW(codec_->device_encode(x, kComposedContext));
    }
  }
  EXPECT_GT(composed, 10);
}

TEST_P(Composed, RefusesWhatIsNotFinite) {
  for (const float bad : {INFINITY, std::nanf("")}) {
    const at::Tensor x = normal_tensor({6, 64}, 20).contiguous();
    x.data_ptr<float>()[200] = bad;
    EXPECT_THROW(codec_->device_encode(x, kComposedContext), NumericError);
  }
}

TEST_P(Composed, ReadsNoBytesThatAreRefused) {
  std::mt19937 random(22);
  for (const auto& shape : {std::vector<int64_t>{3, 64}, {2, 5, 7}, {4, 3, 8, 8}}) {
    const at::Tensor x = normal_tensor(shape, 23);
    std::optional<at::Tensor> good;
    try {
      good = codec_->encode(x, kComposedContext);
    } catch (const InputError&) {
      continue;
    }
    for (int round = 0; round < 400; ++round) {
      const at::Tensor bad = good->clone();
      auto* const bytes = bad.data_ptr<uint8_t>();
      for (size_t flips = 1 + random() % 3; flips > 0; --flips) {
        bytes[random() % static_cast<size_t>(bad.numel())] ^= static_cast<uint8_t>(1U << (random() % 8));
      }
      at::Tensor seen;
      try {
        seen = seen_of(bytes_of(bad), meta_of(x));
      } catch (const WireError&) {  // the host finds it
      }
      try {
        const at::Tensor expected = codec_->decode(bad, meta_of(x), kComposedContext);
        ASSERT_TRUE(seen.defined()) << round;
        ASSERT_TRUE(same_bits(seen, expected)) << round;
      } catch (const WireError&) {
        ASSERT_FALSE(seen.defined()) << round;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, Composed,
    testing::Values("none", "fp16", "bf16", "fp8:e4m3", "fp8:e5m2", "mx:int8", "mx:e2m1", "sign",
                    "sign,scope=block:64", "onebit", "quant:1", "quant:2", "quant:3,scope=sample",
                    "quant:4,scope=channel", "quant:5,scope=block:64", "quant:8", "quant:4,rounding=stochastic",
                    "quant:3,scope=block:64,rounding=stochastic", "quant:4,levels=symmetric",
                    "quant:2,scope=block:64,levels=symmetric", "quant:4,scope=block:64,rotate=hadamard",
                    "quant:2,scope=block:32,spikes=1", "quant:4,spikes=1",
                    "quant:4,scope=channel,levels=symmetric,rotate=hadamard,spikes=1",
                    "quant:2,scope=block:264,spikes=1", "qsgd:4", "natural", "topk:0.1,index=bitmap",
                    "topk:0.3,index=bitmap,values=fp16", "topk:1", "topk:0.1,index=bitmap,values=quant:8",
                    "topk:0.5,index=bitmap,values=quant:3,scope=tensor", "topk:0.2,index=bitmap,scope=block:64",
                    "topk:0.1", "topk:0.02,index=rice", "topk:0.3,index=interlaced,values=bf16",
                    "topk:0.2,scope=block:64", "random:0.1", "random:0.25,scale=unbiased",
                    "random:0.3,scope=tensor,values=quant:4", "random:1,values=bf16", "columns:0.25",
                    "columns:0.4,scope=sample,values=quant:4", "columns:0.5,values=fp16", "columns:1"));

/// The others go by the CPU: their payloads have a length of their own, their values are another codec's, or
/// their sums have the order of rows.
TEST(ComposedForms, AreThereForCodecsOfAFixedLength) {
  const at::Tensor x = normal_tensor({4, 3, 8, 64}, 1);
  for (const auto& info : codec_list()) {
    for (const auto& spec : info.samples) {
      const auto codec = make_codec(spec);
      const bool is_fixed = codec->payload_size(meta_of(x)).exact || codec->device_form() != nullptr;
      const Sparsifier* const sparsifier = codec->sparsifier();
      const bool writes_values = sparsifier == nullptr || sparsifier->values().values().has_composed_form();
      const bool expected = is_fixed && writes_values && info.name != "lowrank";
      EXPECT_EQ(codec->device_encode(x, kComposedContext).defined(), expected) << spec;
    }
  }
}

TEST(ComposedBytes, ArePackedAsTheKernelsPackThem) {
  std::mt19937 random(3);
  for (unsigned bits = 1; bits <= 8; ++bits) {
    for (const int64_t n : {1, 7, 8, 9, 63, 200}) {
      at::Tensor codes = at::empty({3, n}, at::kLong);
      for (int64_t i = 0; i < codes.numel(); ++i) codes.data_ptr<int64_t>()[i] = random() % (1U << bits);
      const at::Tensor packed = packed_rows(codes, bits).contiguous();
      ASSERT_EQ(packed.size(1), static_cast<int64_t>(kernels::packed_size(static_cast<size_t>(n), bits)));
      for (int64_t row = 0; row < 3; ++row) {
        // Bit i * bits + j of a row is bit j of its code i.
        for (int64_t bit = 0; bit < 8 * packed.size(1); ++bit) {
          const auto code = static_cast<int64_t>(bit / bits);
          const auto* const bytes = packed.data_ptr<uint8_t>() + row * packed.size(1);
          const int64_t expected = code < n ? codes[row][code].item<int64_t>() >> (bit % bits) & 1 : 0;
          ASSERT_EQ(bytes[bit / 8] >> (bit % 8) & 1, expected) << bits << " bits, " << n << ", bit " << bit;
        }
      }
      EXPECT_TRUE(at::equal(unpacked_rows(packed, n, bits), codes));
      if (const auto used = static_cast<unsigned>(n) * bits % 8; used != 0) {
        packed.data_ptr<uint8_t>()[packed.numel() - 1] |= 0x80;
        EXPECT_FALSE(unpacked_rows(packed, n, bits).defined());
      }
    }
  }
}

}  // namespace
}  // namespace strait
