#include "strait/planning/codec_bench.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "strait/base/error.h"
#include "strait/codecs/sparsifier.h"

namespace strait {
namespace {

constexpr size_t kNear = 4000;  // bytes: two turns of 4 x 128 elements
constexpr Repetitions kOnce{.warm_up = 1, .least = 1, .most = 1, .seconds = 0};

BenchInput small_input(bool relu = false) { return BenchInput::drawn({4, 128}, relu, kNear); }

TEST(Times, TheMedianLeavesTheWarmUpOut) {
  Times times(2);
  for (const double seconds : {100.0, 90.0, 3.0, 1.0, 2.0}) times.add(seconds);
  EXPECT_EQ(times.median(), 2);
  times.add(4);
  EXPECT_EQ(times.median(), 3);
}

TEST(Repeat, CountsWhereTimeDoesNotDecide) {
  const auto calls = [](const Repetitions& repetitions) {
    int count = 0;
    repeat(repetitions, [&] { ++count; });
    return count;
  };
  EXPECT_EQ(calls({.warm_up = 2, .least = 3, .most = 9, .seconds = 0}), 5);
  EXPECT_EQ(calls({.warm_up = 0, .least = 3, .most = 9, .seconds = 1e9}), 9);
}

TEST(ColdDistance, IsNeverBelowItsLeast) { EXPECT_GE(cold_distance(), 75'000'000); }

TEST(BenchInput, TakesTurnsAtTheDistance) {
  BenchInput input = small_input();
  EXPECT_EQ(input.bytes(), 4 * 128 * 4);
  EXPECT_EQ(input.copies(), 3);  // two others of 2048 bytes lie between two turns
  EXPECT_EQ(input.data(), "normal");
  EXPECT_EQ(input.meta().shape, (std::vector<int64_t>{4, 128}));
  const at::Tensor first = input.next();
  std::vector<const void*> seen = {first.data_ptr()};
  for (int i = 1; i < 3; ++i) {
    const at::Tensor x = input.next();
    EXPECT_EQ(x.sizes(), first.sizes());
    EXPECT_FALSE(at::equal(x, first)) << "another draw";
    EXPECT_THAT(seen, testing::Not(testing::Contains(x.data_ptr())));
    seen.push_back(x.data_ptr());
  }
  EXPECT_EQ(input.next().data_ptr(), first.data_ptr());
}

TEST(BenchInput, AnInputLargerThanTheDistanceHasTwoCopies) {
  EXPECT_EQ(BenchInput::drawn({5, 1000}, false, kNear).copies(), 2);
}

TEST(BenchInput, DrawsTheSameEveryTime) {
  EXPECT_TRUE(at::equal(small_input().next(), small_input().next()));
  const at::Tensor relu = small_input(true).next();
  EXPECT_EQ(small_input(true).data(), "relu");
  EXPECT_TRUE(at::equal(relu, small_input().next().relu()));
}

TEST(BenchInput, RepeatsATensor) {
  at::manual_seed(4);
  const at::Tensor x = at::randn({6, 2}).t();  // not contiguous
  BenchInput input = BenchInput::repeated("weights", x, kNear);
  EXPECT_EQ(input.data(), "weights");
  EXPECT_EQ(input.copies(), 85);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor copy = input.next();
    EXPECT_TRUE(at::equal(copy, x));
    EXPECT_TRUE(copy.is_contiguous());
  }
}

MessageBits bits_of(const LinkOptions& options, const MessageMeta& meta, size_t payload_bytes) {
  return message_bits(*make_link(options.codec, options.feedback), meta, payload_bytes);
}

TEST(MessageBits, CountIndexSetsAgainstTheirBound) {
  // 2 rows of 6 elements of which 2 are kept: one of 15 sets each.
  const MessageMeta meta{{2, 6}};
  const size_t payload = 2 * (5 + 1) + 2 * 2 * sizeof(float);
  const MessageBits bits = bits_of({"topk:0.3,index=bitmap", "none"}, meta, payload);
  EXPECT_DOUBLE_EQ(bits.all, 8.0 * 28 / 12);
  EXPECT_DOUBLE_EQ(bits.index.value(), 8.0);
  EXPECT_NEAR(bits.index_bound.value(), 2 * std::log2(15) / 12, 1e-12);
}

TEST(MessageBits, TwoHalvesHaveTwoIndexSets) {
  const size_t payload = 8 + (5 + 1 + 2 * 4) + (5 + 1 + 4);  // 2 of 6 and 1 of 6
  const MessageBits bits = bits_of({"topk:0.5,index=bitmap", "ef-mixed"}, MessageMeta{{1, 6}}, payload);
  EXPECT_DOUBLE_EQ(bits.index.value(), 8.0 * 20 / 6);
  EXPECT_NEAR(bits.index_bound.value(), (std::log2(15) + std::log2(6)) / 6, 1e-12);
}

TEST(MessageBits, OneThatKeepsAllHasNoIndices) {
  const MessageBits bits = bits_of({"topk:1", "none"}, MessageMeta{{2, 6}}, 48);
  EXPECT_EQ(bits.index.value(), 0);
  EXPECT_NEAR(bits.index_bound.value(), 0, 1e-12);
}

TEST(MessageBits, AHalfMayKeepNothing) {
  const MessageBits bits = bits_of({"topk:0.1", "ef-mixed"}, MessageMeta{{1, 6}}, 8 + 5 + 1 + 4);
  EXPECT_DOUBLE_EQ(bits.index.value(), 8.0 * 14 / 6);
}

TEST(MessageBits, OtherCodecsHaveNoIndices) {
  const MessageBits bits = bits_of({"fp16", "ef"}, MessageMeta{{2, 6}}, 24);
  EXPECT_EQ(bits.all, 16);
  EXPECT_FALSE(bits.index);
  EXPECT_FALSE(bits.index_bound);
}

/// Every sample with every scheme that can serve it.
std::vector<LinkOptions> all_links() {
  std::vector<LinkOptions> links;
  for (const auto& info : codec_list()) {
    for (const auto sample : info.samples) {
      const std::string spec(sample);
      for (const auto& feedback : link_samples()) {
        try {
          make_link(spec, feedback);
        } catch (const InputError&) {  // feedback that cannot go around the codec
          continue;
        }
        links.push_back({spec, feedback});
      }
    }
  }
  return links;
}

TEST(VerifyLink, FindsEveryLinkRight) {
  auto links = all_links();
  links.push_back({"quant:4", "aq-sgd,format=quant:8"});
  links.push_back({"topk:0.1", "aq-sgd,format=bf16"});
  for (const auto& link : links) {
    SCOPED_TRACE(link.codec + " " + link.feedback);
    BenchInput input = small_input();
    const auto codec = make_codec(link.codec);
    const size_t bytes = verify_link(link.feedback, codec, input).payload_bytes;
    EXPECT_GT(bytes, 0);
    EXPECT_LE(bytes, make_link(codec, link.feedback)->payload_size(input.meta()).bound);
  }
}

TEST(VerifyLink, GivesTheErrorOfTheLastMessage) {
  BenchInput input = small_input();
  const double found = verify_link("none", make_codec("sign,scope=tensor"), input).relative_error;
  BenchInput again = small_input();
  for (int before = 0; before < 2; ++before) again.next();
  const at::Tensor x = again.next().to(at::kDouble);
  const at::Tensor seen = x.abs().mean() * x.ge(0).to(at::kDouble).mul(2).sub(1);
  EXPECT_NEAR(found, (x - seen).norm().item<double>() / x.norm().item<double>(), 1e-6);
}

/// Sends the tensor as it is, but says that it gives something else from the given call on.
class Liar : public Codec {
 public:
  explicit Liar(int from) : Codec({kFirstOwnId, "liar"}), from_(from) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    at::Tensor seen = x.clone();
    if (context.step >= static_cast<uint64_t>(from_)) seen.view(-1)[-1] += 1;
    return seen;
  }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {meta.elements() * sizeof(float), true};
  }
  void do_encode(std::span<const float> x, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    for (const float value : x) out.put(value);
  }
  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    for (float& value : out) value = in.get<float>();
  }

 private:
  int from_;
};

TEST(VerifyLink, FindsOneElementOfTheLastMessage) {
  BenchInput input = small_input();
  const VerifiedMessage honest = verify_link("none", std::make_shared<Liar>(3), input);
  EXPECT_EQ(honest.payload_bytes, input.bytes());
  EXPECT_EQ(honest.relative_error, 0);
  for (const std::string feedback : {"none", "ef", "ef21", "aq-sgd"}) {
    try {
      verify_link(feedback, std::make_shared<Liar>(2), input);
      FAIL() << feedback;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("feedback " + feedback + ", data normal, message 2"));
    }
  }
}

TEST(BenchCodec, MeasuresEveryLink) {
  for (const auto& link : all_links()) {
    SCOPED_TRACE(link.codec + " " + link.feedback);
    BenchInput input = small_input(true);
    const CodecRates rates = bench_codec(link, input, kOnce);
    for (const double value :
         {rates.memcpy_gb_s, rates.encode_gb_s, rates.decode_gb_s, rates.encode_memcpy_ratio,
          rates.decode_memcpy_ratio, rates.reference_gb_s.value_or(1), rates.bits.all}) {
      EXPECT_GT(value, 0);
      EXPECT_TRUE(std::isfinite(value));
    }
    const auto codec = make_codec(link.codec);
    EXPECT_EQ(rates.reference_gb_s.has_value(), codec->reference(at::ones({1, 1})).defined());
    const auto* const sparsifier = codec->sparsifier();
    const bool alike = !make_link(link.codec, link.feedback)->needs_previous();  // no message goes in full
    EXPECT_EQ(rates.bits.index.has_value(), sparsifier != nullptr && sparsifier->sends_index_sets() && alike);
  }
}

TEST(BenchCodec, CountsTheBitsOfTheFormat) {
  BenchInput input = small_input();
  EXPECT_EQ(bench_codec({"bf16", "none"}, input, kOnce).bits.all, 16);
  EXPECT_DOUBLE_EQ(bench_codec({"quant:4,scope=sample", "none"}, input, kOnce).bits.all, 4 + 64.0 / 128);
  EXPECT_DOUBLE_EQ(bench_codec({"topk:0.1,index=bitmap", "ef21"}, input, kOnce).bits.index.value(),
                   1 + 8 * 5 / 128.0);
  EXPECT_EQ(bench_codec({"none", "aq-sgd"}, input, kOnce).bits.all, 32);
}

TEST(BenchCodec, ThrowsWhatCannotBeSent) {
  BenchInput input =
      BenchInput::repeated("bad", at::full({2, 3}, std::numeric_limits<float>::infinity()), kNear);
  EXPECT_THROW(bench_codec({"quant:4", "none"}, input, kOnce), NumericError);
  EXPECT_THROW(bench_codec({"quart:4", "none"}, input, kOnce), InputError);
  EXPECT_THROW(bench_codec({"quant:4", "ef-mixed"}, input, kOnce), InputError);
}

}  // namespace
}  // namespace strait
