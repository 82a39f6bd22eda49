// The feedback links against their definitions, computed here with plain tensor operations.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "strait/links/link.h"

namespace strait {
namespace {

/// Both halves of a link, joined by nothing but bytes.
class Pair {
 public:
  Pair(const std::string& feedback, const std::string& codec)
      : link_(make_link(feedback, make_codec(codec))),
        encoder_(link_->make_encoder()),
        decoder_(make_link(feedback, make_codec(codec))->make_decoder()) {}

  at::Tensor send(const at::Tensor& x, size_t first_row = 0, bool frozen = false, uint64_t step = 0) {
    const MessageContext context{.seed = 3, .step = step, .first_row = first_row};
    std::vector<std::byte> space(link_->payload_size(meta_of(x)).bound);
    ByteWriter out(space);
    if (frozen) {
      encoder_->encode_frozen(x, context, out);
    } else {
      encoder_->encode(x, context, out);
    }
    ByteReader in(std::span<const std::byte>(space).first(out.used()));
    return frozen ? decoder_->decode_frozen(in, meta_of(x), context)
                  : decoder_->decode(in, meta_of(x), context);
  }

  std::map<std::string, at::Tensor> encoder_state() { return state_of(*encoder_); }
  std::map<std::string, at::Tensor> decoder_state() { return state_of(*decoder_); }

 private:
  template <class Half>
  static std::map<std::string, at::Tensor> state_of(Half& half) {
    struct Reader : StateVisitor {
      void tensor(std::string_view name, at::Tensor& value) override {
        state.emplace(name, value.defined() ? value.clone() : value);
      }
      std::map<std::string, at::Tensor> state;
    } reader;
    half.visit_state(reader);
    return reader.state;
  }

  std::shared_ptr<const Link> link_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Decoder> decoder_;
};

const std::vector<std::string> kCodecs = {"topk:0.1",
                                          "topk:0.25,values=fp16",
                                          "quant:2,scope=sample",
                                          "quant:4,scope=sample,rounding=stochastic",
                                          "fp16",
                                          "none"};

void expect_equal(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << name;
}

TEST(Ef, TelescopesSoThatNothingIsLostForEver) {
  for (const auto& codec : kCodecs) {
    at::manual_seed(1);
    Pair pair("ef", codec);
    at::Tensor sent = at::zeros({4, 30});
    at::Tensor received = at::zeros({4, 30});
    for (int message = 0; message < 20; ++message) {
      const at::Tensor x = at::randn({4, 30});
      sent += x;
      received += pair.send(x);
    }
    const at::Tensor residual = pair.encoder_state().at("residual");
    EXPECT_TRUE(at::allclose(received + residual, sent, 1e-4, 1e-4)) << codec;
    EXPECT_TRUE(pair.decoder_state().empty());
  }
}

TEST(Ef, SendsTheOperatorOfMessageAndResidual) {
  at::manual_seed(2);
  const auto codec = make_codec("topk:0.2");
  Pair pair("ef", "topk:0.2");
  at::Tensor residual = at::zeros({3, 20});
  for (int message = 0; message < 5; ++message) {
    const at::Tensor x = at::randn({3, 20});
    const at::Tensor expected = codec->reconstruct(x + residual, {});
    EXPECT_TRUE(at::equal(pair.send(x), expected));
    residual = x + residual - expected;
  }
}

TEST(Ef21, ConvergesOnAConstantMessage) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 40});
  for (const char* codec : {"topk:0.1", "quant:3,scope=sample"}) {
    Pair pair("ef21", codec);
    at::Tensor seen;
    for (int message = 0; message < 12; ++message) seen = pair.send(x);
    EXPECT_TRUE(at::allclose(seen, x, 1e-4, 1e-5)) << codec;
  }
}

TEST(Ef21, AddsTheOperatorOfTheDifference) {
  at::manual_seed(4);
  const auto codec = make_codec("topk:0.2");
  Pair pair("ef21", "topk:0.2");
  at::Tensor estimate = at::zeros({3, 20});
  for (int message = 0; message < 5; ++message) {
    const at::Tensor x = at::randn({3, 20});
    estimate = estimate + codec->reconstruct(x - estimate, {});
    EXPECT_TRUE(at::equal(pair.send(x), estimate));
  }
}

TEST(Ef21, BothEndsHoldTheSameBitsAfterAThousandMessages) {
  for (const auto& codec : kCodecs) {
    at::manual_seed(5);
    Pair pair("ef21", codec);
    for (int message = 0; message < 1000; ++message) pair.send(at::randn({3, 17}) * (1 + message % 7));
    expect_equal(pair.encoder_state(), pair.decoder_state());
  }
}

TEST(Feedback, WhatTheReceiverGetsSharesNothingWithItsState) {
  Pair pair("ef21", "topk:0.5");
  at::Tensor seen = pair.send(at::randn({2, 8}));
  const auto before = pair.decoder_state();
  seen.fill_(100);
  expect_equal(pair.decoder_state(), before);
}

class EveryFeedback : public testing::TestWithParam<const char*> {};

TEST_P(EveryFeedback, EvaluationLeavesTheStateAlone) {
  Pair pair(GetParam(), "topk:0.25");
  pair.send(at::randn({4, 12}));
  const auto encoder = pair.encoder_state();
  const auto decoder = pair.decoder_state();
  pair.send(at::randn({4, 12}), 0, true);
  pair.send(at::randn({9, 12}), 0, true);  // a larger batch than training has seen
  expect_equal(pair.encoder_state(), encoder);
  expect_equal(pair.decoder_state(), decoder);
}

TEST_P(EveryFeedback, MicroBatchesUseTheRowsOfTheBatch) {
  for (const auto& codec : kCodecs) {
    at::manual_seed(6);
    Pair whole(GetParam(), codec);
    Pair parts(GetParam(), codec);
    for (uint64_t message = 0; message < 4; ++message) {
      const at::Tensor x = at::randn({6, 16});
      const at::Tensor seen = whole.send(x, 0, false, message);
      for (int64_t row = 0; row < 6; row += 2) {
        const at::Tensor part = parts.send(x.narrow(0, row, 2), static_cast<size_t>(row), false, message);
        EXPECT_TRUE(at::equal(part, seen.narrow(0, row, 2))) << codec;
      }
    }
  }
}

TEST_P(EveryFeedback, AShortBatchUpdatesItsOwnRowsOnly) {
  Pair pair(GetParam(), "topk:0.25");
  pair.send(at::randn({4, 12}));
  const auto before = pair.encoder_state().begin()->second;
  pair.send(at::randn({3, 12}));
  const auto after = pair.encoder_state().begin()->second;
  EXPECT_FALSE(at::equal(before.narrow(0, 0, 3), after.narrow(0, 0, 3)));
  EXPECT_TRUE(at::equal(before[3], after[3]));
}

TEST_P(EveryFeedback, AMessageThatCannotBeSentChangesNothing) {
  Pair pair(GetParam(), "quant:4");
  pair.send(at::randn({2, 6}));
  const auto before = pair.encoder_state();
  EXPECT_THROW(pair.send(at::full({2, 6}, std::numeric_limits<float>::quiet_NaN())), NumericError);
  expect_equal(pair.encoder_state(), before);
}

INSTANTIATE_TEST_SUITE_P(Links, EveryFeedback, testing::Values("ef", "ef21"));

}  // namespace
}  // namespace strait
