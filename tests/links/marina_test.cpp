// marina against its definition, computed here with plain tensor operations.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "strait/codecs/codec.h"
#include "strait/wire/frame.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

using test::expect_equal;
using test::load_state;
using test::Pair;

constexpr int64_t kRowsOfMarina = 3;
constexpr int64_t kWidthOfMarina = 64;  // which every codec takes

MessageContext context_of(uint64_t step, const at::Tensor& previous = {}) {
  MessageContext context{.seed = 3, .direction = Direction::gradient, .step = step};
  if (previous.defined()) context.previous = &previous;
  return context;
}

std::vector<std::byte> encoded(const Link& link, Encoder& encoder, const at::Tensor& x,
                               const MessageContext& context) {
  std::vector<std::byte> space(link.payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  encoder.encode(x, context, out);
  space.resize(out.used());
  return space;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

/// Sends messages of two lists, x and x_before, and compares with g = x or g + D(C(x - x_before)). Gives how
/// many went in full.
int follow(const std::string& codec_spec, const std::string& p, int messages) {
  at::manual_seed(14);
  const auto codec = make_codec(codec_spec);
  Pair pair("marina:" + p, codec_spec);
  at::Tensor estimate;
  int in_full = 0;
  for (int i = 0; i < messages; ++i) {
    const at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
    const at::Tensor before = at::randn({kRowsOfMarina, kWidthOfMarina});
    const MessageContext context = context_of(static_cast<uint64_t>(i), before);
    const bool full = !pair.encoder().needs_previous(context);
    in_full += full ? 1 : 0;
    estimate = full ? x : estimate + codec->reconstruct(x - before, context);
    EXPECT_TRUE(same_bits(pair.send(x, context), estimate)) << codec_spec << ", message " << i;
    EXPECT_TRUE(same_bits(pair.encoder_state().at("estimate"), estimate)) << i;
    EXPECT_TRUE(same_bits(pair.decoder_state().at("estimate"), estimate)) << i;
    EXPECT_EQ(pair.bytes() == static_cast<size_t>(x.nbytes()), full || codec_spec == kUncompressed) << i;
    EXPECT_TRUE(full || i > 0);
  }
  return in_full;
}

TEST(Marina, SendsTheMessageInFullOrADifferenceOfTwoGradients) {
  for (const char* codec : {"topk:0.1", "quant:4,scope=sample,rounding=stochastic", "qsgd:3", "natural",
                            "random:0.25,scale=unbiased", "fp16", "lowrank:2,warm=no", "none"}) {
    const int in_full = follow(codec, "0.3", 40);
    EXPECT_GT(in_full, 4);
    EXPECT_LT(in_full, 24);
  }
}

/// p within four standard errors of its share, and what is encoded is decoded by the same coin.
TEST(Marina, TheCoinIsThrownAsOftenAsItSays) {
  constexpr int kSteps = 10'000;
  for (const double p : {0.03, 0.25, 0.9}) {
    Pair pair(fmt::format("marina:{}", p), "fp16");
    const at::Tensor before = at::zeros({1, 2});
    at::Tensor expected = at::zeros({1, 2});
    int in_full = 0;
    for (uint64_t step = 0; step < kSteps; ++step) {
      const at::Tensor x = at::full({1, 2}, step % 2 == 0 ? 1.0F : -0.5F);
      const at::Tensor seen = pair.send(x, context_of(step, before));
      const bool full = pair.bytes() == 8;
      expected = full ? x : expected + x;
      ASSERT_TRUE(at::equal(seen, expected)) << step;
      if (step > 0) in_full += full ? 1 : 0;
    }
    EXPECT_NEAR(in_full, p * (kSteps - 1), 4 * std::sqrt(p * (1 - p) * (kSteps - 1))) << p;
  }
}

TEST(Marina, AllSendersOfAStepHaveOneCoinAndOtherSeedsAnother) {
  const auto sender = [] {
    auto encoder = make_link("fp16", "marina:0.5")->make_encoder();
    std::vector<std::byte> space(64);
    ByteWriter out(space);
    encoder->encode(at::zeros({1, 2}), {}, out);
    return encoder;
  };
  const auto one = sender();
  const auto other = sender();
  int same = 0;
  constexpr int kSteps = 1000;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    const bool needs = one->needs_previous({.seed = 3, .boundary = 4, .step = step});
    EXPECT_EQ(other->needs_previous({.seed = 3, .boundary = 9, .step = step, .micro_batch = 2}), needs);
    same += other->needs_previous({.seed = 4, .boundary = 4, .step = step}) == needs ? 1 : 0;
  }
  EXPECT_NEAR(same, kSteps / 2, 4 * std::sqrt(kSteps / 4.0));
}

TEST(Marina, WithACoinThatIsAlwaysThrownItIsPlainWithoutCompression) {
  at::manual_seed(15);
  const auto link = make_link("topk:0.1", "marina:1");
  const auto plain = make_link(kUncompressed);
  const auto encoder = link->make_encoder();
  const auto plain_encoder = plain->make_encoder();
  const MessageMeta meta{{kRowsOfMarina, kWidthOfMarina}};
  EXPECT_EQ(link->payload_size(meta).bound, plain->payload_size(meta).bound);
  EXPECT_TRUE(link->payload_size(meta).exact);
  for (uint64_t step = 0; step < 5; ++step) {
    at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
    x[0][step] = -0.0F;
    EXPECT_FALSE(encoder->needs_previous(context_of(step)));
    EXPECT_EQ(encoded(*link, *encoder, x, context_of(step)),
              encoded(*plain, *plain_encoder, x, context_of(step)));
  }
}

/// The gradient of 1/2 w A w - b w at two points; the estimate behind the first is the gradient there.
TEST(Marina, TheEstimateIsRightInTheMeanWithACodecThatIs) {
  at::manual_seed(16);
  constexpr int kDraws = 10'000;
  const at::Tensor root = at::randn({16, 16});
  const at::Tensor a = root.mm(root.t()).div(16);
  const at::Tensor b = at::randn({16, 1});
  const auto gradient = [&](const at::Tensor& w) { return (a.mm(w) - b).t().contiguous(); };
  const at::Tensor before = gradient(at::randn({16, 1}));
  const at::Tensor now = gradient(at::randn({16, 1}));
  for (const char* codec : {"qsgd:3", "random:0.25,scale=unbiased"}) {
    const auto link = make_link(codec, "marina:0.3");
    at::Tensor sum = at::zeros({1, 16}, at::kDouble);
    at::Tensor squares = at::zeros({1, 16}, at::kDouble);
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      Pair pair(link, {link->make_encoder(), link->make_decoder()});
      pair.send(before, MessageContext{.seed = draw, .step = 7});
      const at::Tensor seen = pair.send(now, MessageContext{.seed = draw, .step = 8, .previous = &before});
      const at::Tensor error = (seen - now).to(at::kDouble);
      sum += error;
      squares += error * error;
    }
    const at::Tensor variance = squares / kDraws - (sum / kDraws).square();
    EXPECT_GT(variance.min().item<double>(), 0) << codec;
    const at::Tensor bound = 4 * (variance / kDraws).sqrt();
    EXPECT_TRUE(sum.div(kDraws).abs().le(bound).all().item<bool>()) << codec;
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The bytes stand in tests/golden/wire/marina.hex and, explained, in docs/wire_format.md.
TEST(Marina, FrameFileAndDocumentationAgree) {
  const auto link = make_link("fp16", "marina:0.25");
  Pair pair(link, {link->make_encoder(), link->make_decoder()});
  const auto encoder = link->make_encoder();
  const at::Tensor before = at::tensor({1.0F, -2.5F}).unsqueeze(0);
  const at::Tensor x = at::tensor({3.0F, -1.0F}).unsqueeze(0);
  const MessageContext second{.step = 1, .previous = &before};
  EXPECT_EQ(encoded(*link, *encoder, before, {}).size(), 8U);
  EXPECT_TRUE(at::equal(pair.send(before, MessageContext()), before));
  const auto payload = encoded(*link, *encoder, x, second);
  EXPECT_TRUE(at::equal(pair.send(x, second), x));
  std::vector<std::byte> frame(kFrameHeaderSize + payload.size());
  std::ranges::copy(payload, frame.begin() + kFrameHeaderSize);
  seal_frame(frame, {.codec = link->codec().id(),
                     .link = link->id(),
                     .boundary = 1,
                     .direction = Direction::gradient,
                     .micro_batch = 2,
                     .sequence = 7});
  std::string hex;
  for (size_t i = 0; i < frame.size(); ++i) {
    const char* end = i % 16 == 15 || i + 1 == frame.size() ? "\n" : " ";
    hex += fmt::format("{:02x}{}", std::to_integer<unsigned>(frame[i]), end);
  }
  EXPECT_EQ(text_of("tests/golden/wire/marina.hex"), hex);
  EXPECT_NE(text_of("docs/wire_format.md").find("```hex\n" + hex + "```\n"), std::string::npos) << hex;
}

/// The packed form against the one in plain tensor operations.
TEST(Marina, GivesTheBitsOfItsReferenceAroundEveryCodec) {
  at::manual_seed(17);
  for (const auto& info : codec_list()) {
    for (const auto sample : info.samples) {
      const auto link = make_link(sample, "marina:0.3");
      Pair pair(link, {link->make_encoder(), link->make_decoder()});
      Pair in_one(link);
      const MessageOperator reference =
          link->reference([](const Codec& codec, const at::Tensor& x, const MessageContext& context) {
            return codec.reconstruct(x, context);
          });
      for (uint64_t step = 0; step < 6; ++step) {
        const at::Tensor x = at::randn({kRowsOfMarina, 2, kWidthOfMarina});
        const at::Tensor before = at::randn({kRowsOfMarina, 2, kWidthOfMarina});
        const at::Tensor seen = pair.send(x, context_of(step, before));
        EXPECT_TRUE(same_bits(seen, reference(x, context_of(step, before)).contiguous()))
            << sample << ", message " << step;
        EXPECT_TRUE(same_bits(seen, in_one.send(x, context_of(step, before)))) << sample;
      }
    }
  }
}

/// The first step of that number or later whose message is a difference, or that goes in full.
uint64_t step_with(Encoder& encoder, bool difference, uint64_t step) {
  while (encoder.needs_previous(context_of(step)) != difference) ++step;
  return step;
}

TEST(Marina, GoesAroundACompressorWithState) {
  at::manual_seed(18);
  const auto link = make_link(make_link("topk:0.1", "ef"), "marina:0.3");
  Pair pair(link, {link->make_encoder(), link->make_decoder()});
  Pair inner("ef", "topk:0.1");
  at::Tensor estimate;
  for (uint64_t step = 0; step < 20; ++step) {
    const at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
    const at::Tensor before = at::randn({kRowsOfMarina, kWidthOfMarina});
    const MessageContext context = context_of(step, before);
    estimate = pair.encoder().needs_previous(context) ? estimate + inner.send(x - before, context) : x;
    EXPECT_TRUE(at::equal(pair.send(x, context), estimate)) << step;
  }
  EXPECT_TRUE(at::equal(pair.encoder_state().at("residual"), inner.encoder_state().at("residual")));
}

TEST(Marina, AMessageWithoutCompressionBeginsAnew) {
  Pair pair("marina:0.01", "topk:0.1");
  const at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
  pair.send(x, context_of(0));
  const uint64_t step = step_with(pair.encoder(), true, 1);
  pair.encoder().observe(x, context_of(step));
  pair.decoder().observe(x, context_of(step));
  EXPECT_FALSE(pair.encoder().needs_previous(context_of(step)));
  EXPECT_TRUE(at::equal(pair.send(2 * x, context_of(step)), 2 * x));
}

TEST(Marina, AFrozenMessageIsTheNextOneAndLeavesTheState) {
  at::manual_seed(19);
  Pair pair("marina:0.3", "topk:0.1");
  pair.send(at::randn({kRowsOfMarina, kWidthOfMarina}), context_of(0));
  for (const bool difference : {true, false}) {
    const uint64_t step = step_with(pair.encoder(), difference, 1);
    const at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
    const at::Tensor before = at::randn({kRowsOfMarina, kWidthOfMarina});
    const auto sender = pair.encoder_state();
    const auto receiver = pair.decoder_state();
    const at::Tensor frozen = pair.send(x, context_of(step, before), /*frozen=*/true).clone();
    expect_equal(pair.encoder_state(), sender);
    expect_equal(pair.decoder_state(), receiver);
    EXPECT_TRUE(at::equal(pair.send(x, context_of(step, before)), frozen));
  }
}

TEST(Marina, GoesOnFromItsState) {
  at::manual_seed(20);
  Pair first("marina:0.3", "topk:0.1");
  first.send(at::randn({kRowsOfMarina, kWidthOfMarina}), context_of(0));
  Pair second("marina:0.3", "topk:0.1");
  load_state(second.encoder(), first.encoder_state());
  load_state(second.decoder(), first.decoder_state());
  for (uint64_t step = 1; step < 12; ++step) {
    const at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
    const at::Tensor before = at::randn({kRowsOfMarina, kWidthOfMarina});
    at::Tensor seen = first.send(x, context_of(step, before));
    EXPECT_TRUE(at::equal(second.send(x, context_of(step, before)), seen)) << step;
    seen.fill_(7);  // what it hands out is none of its state
  }
}

TEST(Marina, WhatIsNoShareIsRefused) {
  for (const char* feedback : {"marina", "marina:0", "marina:1.5", "marina:x", "marina:0.5,slots=sample"})
    EXPECT_THROW(make_link("topk:0.5", feedback), InputError) << feedback;
}

TEST(Marina, NeedsTheGradientBefore) {
  Pair pair("marina:0.3", "topk:0.1");
  const at::Tensor x = at::randn({kRowsOfMarina, kWidthOfMarina});
  pair.send(x, context_of(0));
  const uint64_t step = step_with(pair.encoder(), true, 1);
  EXPECT_THROW(pair.send(x, context_of(step)), InternalError);
  EXPECT_THROW(pair.send(x, context_of(step, x.narrow(0, 0, 1))), InternalError);
}

TEST(ExpectNoPrevious, NamesThePlace) {
  EXPECT_NO_THROW(expect_no_previous("there", *make_link("topk:0.1", "ef21")));
  try {
    expect_no_previous("there", *make_link("topk:0.1", "marina:0.5"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "there: expected feedback that needs its message alone; this one needs gradients at the weights "
        "of the step before, which are there for compression.replicas of a training");
  }
}

TEST(Link, SaysWhetherItKeepsState) {
  EXPECT_FALSE(make_link("topk:0.1")->keeps_state());
  EXPECT_FALSE(make_link("lowrank:1,warm=no")->keeps_state());
  EXPECT_TRUE(make_link("lowrank:1,warm=yes")->keeps_state());
  for (const char* feedback : {"ef", "ef21", "aq-sgd", "ef21,slots=class", "marina:0.5"})
    EXPECT_TRUE(make_link("topk:0.1", feedback)->keeps_state()) << feedback;
}

}  // namespace
}  // namespace strait
