#include "strait/experiment/plain_link.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/codecs/selective.h"

namespace strait {
namespace {

at::Tensor normal(const std::vector<int64_t>& shape, int64_t seed) {
  at::manual_seed(seed);
  return at::randn(shape);
}

/// Adds a tenth and forgets the rest, so that what a scheme does with an operator can be worked out by hand.
LinkOperators tenths() {
  const auto part = [](double share) -> Operator {
    return [share](const at::Tensor& x, const MessageContext& /*context*/) { return x.mul(share); };
  };
  return {part(0.5), part(0.25), part(0.125)};
}

/// What comes of the messages 8, 16 and 32.
std::vector<float> received(const std::string& feedback) {
  const Operator link = plain_link(feedback, tenths());
  std::vector<float> seen;
  for (const float value : {8.0F, 16.0F, 32.0F})
    seen.push_back(link(at::full({1, 1}, value), {}).item<float>());
  return seen;
}

TEST(PlainLink, FollowsTheDefinitionOfEachScheme) {
  EXPECT_THAT(received("none"), testing::ElementsAre(4, 8, 16));
  EXPECT_THAT(received("ef"), testing::ElementsAre(4, 10, 21));                // e: 4, 10, 21
  EXPECT_THAT(received("ef21"), testing::ElementsAre(4, 10, 21));              // g + (x - g) / 2
  EXPECT_THAT(received("ef-mixed"), testing::ElementsAre(2, 4.75, 10.15625));  // e: 6, 17.25
  EXPECT_THAT(received("aq-sgd"), testing::ElementsAre(8, 12, 22));
}

TEST(PlainLink, RefusesAnUnknownName) { EXPECT_THROW(plain_link("none at all", tenths()), InputError); }

/// The k elements of largest magnitude of each row, the others 0.
at::Tensor largest(const at::Tensor& x, int64_t k) {
  const at::Tensor kept = std::get<1>(x.abs().topk(k, 1));
  return at::zeros_like(x).scatter(1, kept, x.gather(1, kept));
}

TEST(ExactOperators, AreTheCodecAndItsHalves) {
  const at::Tensor x = normal({3, 6}, 1);
  const LinkOperators operators = exact_operators(make_codec("topk:0.5"));
  EXPECT_TRUE(at::equal(operators.whole(x, {}), largest(x, 3)));
  EXPECT_TRUE(at::equal(operators.larger_half(x, {}), largest(x, 2)));
  EXPECT_TRUE(at::equal(operators.smaller_half(x, {}), largest(x, 1)));
  EXPECT_FALSE(exact_operators(make_codec("fp16")).larger_half);
}

/// Whatever the codec, an exact operator is what its bytes decode to.
TEST(ExactOperators, AreWhatTheReceiverSees) {
  for (const auto& info : codec_list()) {
    for (const auto sample : info.samples) {
      const auto codec = make_codec(sample);
      const at::Tensor x = normal({3, 4, 10}, 2);
      const MessageContext context{.seed = 4, .step = 7};
      std::vector<std::byte> space(codec->payload_size(meta_of(x)).bound);
      ByteWriter out(space);
      codec->encode(x, context, out);
      ByteReader in(std::span<const std::byte>(space).first(out.used()));
      const at::Tensor received = codec->decode(in, meta_of(x), context);
      EXPECT_TRUE(at::equal(exact_operators(codec).whole(x, context), received)) << sample;
    }
  }
}

class PlainOperators : public testing::TestWithParam<std::string> {};

bool rounds_at_random(const std::string& spec) { return spec.find("stochastic") != std::string::npos; }

TEST_P(PlainOperators, GiveWhatTheCodecGives) {
  const auto codec = make_codec(GetParam());
  const auto plain = plain_operators(codec);
  ASSERT_TRUE(plain);
  for (const auto& shape : std::vector<std::vector<int64_t>>{{5, 37}, {4, 3, 8, 8}, {1, 7}}) {
    const at::Tensor x = normal(shape, 2);
    const at::Tensor seen = plain->whole(x, {});
    const at::Tensor expected = codec->reconstruct(x, {});
    EXPECT_EQ(seen.sizes(), expected.sizes());
    if (rounds_at_random(GetParam())) {
      // Each is one of the two levels around the element.
      const double step = (x.max() - x.min()).item<double>() / 15;
      EXPECT_LT((seen - x).abs().max().item<double>(), step * 1.001);
    } else {
      EXPECT_TRUE(at::equal(seen, expected)) << x.sizes();
    }
  }
}

TEST_P(PlainOperators, HalvesAreThereForCodecsThatSelect) {
  const auto codec = make_codec(GetParam());
  const auto plain = plain_operators(codec);
  ASSERT_TRUE(plain);
  ASSERT_EQ(static_cast<bool>(plain->smaller_half), codec->selective() != nullptr);
  if (codec->selective() == nullptr) return;
  const auto exact = exact_operators(codec);
  const at::Tensor x = normal({6, 40}, 3);
  EXPECT_TRUE(at::equal(plain->larger_half(x, {}), exact.larger_half(x, {})));
  EXPECT_TRUE(at::equal(plain->smaller_half(x, {}), exact.smaller_half(x, {})));
}

/// A codec may be without a plain formulation, but these are not.
TEST(PlainOperators, AreThereForTheFirstCodecs) {
  for (const char* spec : {"none", "fp16", "bf16", "quant:4,scope=block:8", "topk:0.1,values=quant:4"}) {
    EXPECT_TRUE(plain_operators(make_codec(spec))) << spec;
  }
}

std::vector<std::string> samples_with_operators() {
  std::vector<std::string> specs;
  for (const auto& info : codec_list()) {
    for (const auto sample : info.samples) {
      if (plain_operators(make_codec(sample))) specs.emplace_back(sample);
    }
  }
  return specs;
}

INSTANTIATE_TEST_SUITE_P(EverySample, PlainOperators, testing::ValuesIn(samples_with_operators()));

TEST(PlainOperators, QuantiseAGroupOfEqualValues) {
  const auto plain = plain_operators(make_codec("quant:4,scope=sample"));
  const at::Tensor x = at::full({2, 9}, -1.5);
  EXPECT_TRUE(at::equal(plain->whole(x, {}), x));
}

TEST(PlainOperators, AreNotThereForAnUnknownCodec) {
  // A half has no spec of its own.
  const auto half = make_codec("topk:0.5")->selective()->half(Selective::Half::larger);
  EXPECT_FALSE(plain_operators(half));
}

}  // namespace
}  // namespace strait
