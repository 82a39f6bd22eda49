// The feedback links against their definitions, computed here with plain tensor operations.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "tests/links/pair.h"
#include "tests/support/largest.h"

namespace strait {
namespace {

using test::expect_equal;
using test::largest;
using test::Pair;

const std::vector<std::string> kCodecs = {"topk:0.1",
                                          "topk:0.25,values=fp16",
                                          "quant:2,scope=sample",
                                          "quant:4,scope=sample,rounding=stochastic",
                                          "random:0.25",
                                          "columns:0.25,scope=sample",
                                          "fp16",
                                          "none"};

/// Those that a link can serve.
std::vector<std::string> codecs_of(const std::string& feedback) {
  if (feedback != "ef-mixed") return kCodecs;
  return {kCodecs.begin(), kCodecs.begin() + 2};
}

void expect_telescoping(const std::string& feedback, const std::string& codec) {
  at::manual_seed(1);
  Pair pair(feedback, codec);
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

TEST(Ef, TelescopesSoThatNothingIsLostForEver) {
  for (const auto& codec : kCodecs) expect_telescoping("ef", codec);
}

TEST(EfMixed, TelescopesSoThatNothingIsLostForEver) {
  for (const auto& codec : codecs_of("ef-mixed")) expect_telescoping("ef-mixed", codec);
}

TEST(EfMixed, SendsTheLargestOfTheMessageAndOfTheResidual) {
  for (const auto& [share, k1, k2] : std::vector<std::tuple<const char*, int64_t, int64_t>>{
           {"0.05", 1, 0}, {"0.1", 1, 1}, {"0.15", 2, 1}, {"0.4", 4, 4}, {"1", 10, 10}}) {
    at::manual_seed(8);
    Pair pair("ef-mixed", std::string("topk:") + share);
    at::Tensor residual = at::zeros({3, 20});
    for (int message = 0; message < 6; ++message) {
      const at::Tensor x = at::randn({3, 20});
      const at::Tensor expected = largest(x, k1) + largest(residual, k2);
      const at::Tensor seen = pair.send(x);
      EXPECT_TRUE(at::equal(seen, expected)) << share << ", message " << message;
      EXPECT_LE(seen.ne(0).sum(1).max().item<int64_t>(), k1 + k2);
      residual = x + residual - expected;
      EXPECT_TRUE(at::equal(pair.encoder_state().at("residual"), residual));
    }
  }
}

TEST(EfMixed, NeedsACodecThatSelectsByMagnitude) {
  for (const std::string codec : {"quant:4", "random:0.1", "columns:0.1"}) {
    try {
      make_link(codec, "ef-mixed");
      FAIL() << codec;
    } catch (const InputError& error) {
      EXPECT_EQ(
          error.what(),
          "feedback \"ef-mixed\" needs a codec that selects the largest elements, such as topk:0.1, not \"" +
              codec + "\"");
    }
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

/// (1 - beta) e + beta lost, by float32 operations one after another.
at::Tensor averaged(const at::Tensor& residual, const at::Tensor& lost, float beta) {
  at::Tensor next = at::empty_like(residual);
  const float rest = 1.0F - beta;
  for (int64_t i = 0; i < residual.numel(); ++i) {
    const float kept = rest * residual.data_ptr<float>()[i];
    const float added = beta * lost.data_ptr<float>()[i];
    next.data_ptr<float>()[i] = kept + added;
  }
  return next;
}

TEST(Ef, WithBetaKeepsAMovingAverageOfWhatIsLost) {
  for (const auto& spec : kCodecs) {
    for (const float beta : {0.25F, 0.9F, 0.001F}) {
      SCOPED_TRACE(fmt::format("{}, beta {}", spec, beta));
      at::manual_seed(9);
      const auto codec = make_codec(spec);
      Pair pair(fmt::format("ef:{}", beta), spec);
      at::Tensor residual = at::zeros({3, 20});
      for (uint64_t step = 0; step < 6; ++step) {
        const at::Tensor x = at::randn({3, 20});
        const at::Tensor expected = codec->reconstruct(x + residual, {.seed = 3, .step = step});
        EXPECT_TRUE(at::equal(pair.send(x, 0, false, step), expected)) << step;
        residual = averaged(residual, x + residual - expected, beta);
        EXPECT_TRUE(at::equal(pair.encoder_state().at("residual"), residual)) << step;
      }
      EXPECT_TRUE(pair.decoder_state().empty());
    }
  }
}

TEST(Ef, OfBetaOneIsEf) {
  for (const auto& spec : kCodecs) {
    at::manual_seed(10);
    Pair one("ef:1", spec);
    Pair plain("ef", spec);
    for (uint64_t step = 0; step < 4; ++step) {
      const at::Tensor x = at::randn({3, 20});
      EXPECT_TRUE(at::equal(one.send(x, 0, false, step), plain.send(x, 0, false, step))) << spec;
      EXPECT_EQ(one.bytes(), plain.bytes());
    }
    expect_equal(one.encoder_state(), plain.encoder_state());
    EXPECT_EQ(one.link().id(), plain.link().id());
  }
}

TEST(Ef, ABetaThatIsNoneIsRefused) {
  for (const char* beta :
       {"", "0", "0.0", "-0.5", "1.5", "1.0000001", "1e-1", "0x1", "nan", "0.5 ", ".5", "half"}) {
    const std::string feedback = std::string("ef:") + beta;
    try {
      make_link("fp16", feedback);
      ADD_FAILURE() << feedback;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(),
                fmt::format("feedback \"{}\": beta must be a decimal above 0 and at most 1, not \"{}\"",
                            feedback, beta));
    }
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

/// g + alpha received, by float32 operations one after another.
at::Tensor moved(const at::Tensor& estimate, const at::Tensor& received, float alpha) {
  at::Tensor next = at::empty_like(estimate);
  for (int64_t i = 0; i < estimate.numel(); ++i) {
    const float step = alpha * received.data_ptr<float>()[i];
    next.data_ptr<float>()[i] = estimate.data_ptr<float>()[i] + step;
  }
  return next;
}

TEST(Diana, ShowsTheEstimateMovedByTheMessageAndMovesItByAShare) {
  for (const auto& spec : kCodecs) {
    for (const float alpha : {0.25F, 0.9F, 0.001F}) {
      SCOPED_TRACE(fmt::format("{}, alpha {}", spec, alpha));
      at::manual_seed(11);
      const auto codec = make_codec(spec);
      Pair pair(fmt::format("diana:{}", alpha), spec);
      at::Tensor estimate = at::zeros({3, 20});
      for (uint64_t step = 0; step < 6; ++step) {
        const at::Tensor x = at::randn({3, 20});
        const at::Tensor received = codec->reconstruct(x - estimate, {.seed = 3, .step = step});
        EXPECT_TRUE(at::equal(pair.send(x, 0, false, step), estimate + received)) << step;
        estimate = moved(estimate, received, alpha);
        EXPECT_TRUE(at::equal(pair.encoder_state().at("estimate"), estimate)) << step;
      }
      expect_equal(pair.encoder_state(), pair.decoder_state());
    }
  }
}

TEST(Ef, ADecayedResidualIsTakenUpInPart) {
  for (const auto& spec : kCodecs) {
    for (const auto& [feedback, beta] : {std::pair("ef,decay=0.75", 1.0F), {"ef:0.5,decay=0.75", 0.5F}}) {
      SCOPED_TRACE(spec + ", " + feedback);
      at::manual_seed(15);
      const auto codec = make_codec(spec);
      Pair pair(feedback, spec);
      at::Tensor residual = at::zeros({3, 20});
      for (uint64_t step = 0; step < 6; ++step) {
        const at::Tensor x = at::randn({3, 20});
        const at::Tensor part = residual * 0.75F;
        const at::Tensor received = codec->reconstruct(x + part, {.seed = 3, .step = step});
        EXPECT_TRUE(at::equal(pair.send(x, 0, false, step), received)) << step;
        const at::Tensor lost = x + part - received;
        residual = beta == 1 ? lost : part * (1 - beta) + lost * beta;
        EXPECT_TRUE(at::equal(pair.encoder_state().at("residual"), residual)) << step;
      }
    }
  }
  for (const char* feedback : {"ef,decay=0", "ef,decay=1.5", "ef,decay=x"}) {
    EXPECT_THROW(make_link("topk:0.5", feedback), InputError) << feedback;
  }
}

TEST(Ef21Sgdm, SendsTheDifferenceOfAMovingAverage) {
  for (const auto& spec : kCodecs) {
    for (const float eta : {0.25F, 0.9F}) {
      SCOPED_TRACE(fmt::format("{}, eta {}", spec, eta));
      at::manual_seed(14);
      const auto codec = make_codec(spec);
      Pair pair(fmt::format("ef21-sgdm:{}", eta), spec);
      at::Tensor average = at::zeros({3, 20});
      at::Tensor estimate = at::zeros({3, 20});
      for (uint64_t step = 0; step < 6; ++step) {
        const at::Tensor x = at::randn({3, 20});
        average = average * (1 - eta) + x * eta;
        estimate = estimate + codec->reconstruct(average - estimate, {.seed = 3, .step = step});
        EXPECT_TRUE(at::equal(pair.send(x, 0, false, step), estimate)) << step;
        EXPECT_TRUE(at::equal(pair.encoder_state().at("average"), average)) << step;
        EXPECT_TRUE(at::equal(pair.encoder_state().at("estimate"), estimate)) << step;
        EXPECT_TRUE(at::equal(pair.decoder_state().at("estimate"), estimate)) << step;
      }
    }
  }
}

TEST(Ef21Sgdm, AnEtaThatIsNoneIsRefused) {
  for (const char* feedback :
       {"ef21-sgdm", "ef21-sgdm:0", "ef21-sgdm:1.5", "ef21-sgdm:x", "ef21-sgdm:0.5,slots=sample"}) {
    EXPECT_THROW(make_link("topk:0.5", feedback), InputError) << feedback;
  }
}

/// The scheme of a step size that reduces to another one, and that one.
class DianaReduces : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(DianaReduces, GivesTheSame) {
  const auto& [diana, other] = GetParam();
  for (const auto& spec : kCodecs) {
    at::manual_seed(12);
    Pair ours(diana, spec);
    Pair theirs(other, spec);
    for (uint64_t step = 0; step < 5; ++step) {
      const at::Tensor x = at::randn({3, 20});
      EXPECT_TRUE(at::equal(ours.send(x, 0, false, step), theirs.send(x, 0, false, step))) << spec;
      EXPECT_EQ(ours.bytes(), theirs.bytes());
    }
    const at::Tensor x = at::randn({3, 20});
    EXPECT_TRUE(at::equal(ours.send(x, 0, true), theirs.send(x, 0, true))) << spec;
    const auto estimate = ours.encoder_state().at("estimate");
    if (theirs.encoder_state().empty()) {
      EXPECT_TRUE(at::equal(estimate, at::zeros({3, 20})));
    } else {
      EXPECT_TRUE(at::equal(estimate, theirs.encoder_state().at("estimate")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Links, DianaReduces,
                         testing::Values(std::pair("diana:1", "ef21"), std::pair("diana:0", "none"),
                                         std::pair("ef21-sgdm:1", "ef21")));

TEST(Diana, ConvergesOnAConstantMessage) {
  at::manual_seed(13);
  const at::Tensor x = at::randn({2, 40});
  for (const char* codec : {"topk:0.25", "quant:3,scope=sample", "quant:2,scope=sample,rounding=stochastic"}) {
    Pair pair("diana:0.5", codec);
    at::Tensor seen;
    for (uint64_t message = 0; message < 100; ++message) seen = pair.send(x, 0, false, message);
    EXPECT_TRUE(at::allclose(seen, x, 1e-4, 1e-5)) << codec;
  }
}

TEST(Diana, AnAlphaThatIsNoneIsRefused) {
  for (const char* alpha : {"-0", "-0.5", "1.5", "1e-1", "nan", "all"}) {
    const std::string feedback = std::string("diana:") + alpha;
    try {
      make_link("fp16", feedback);
      ADD_FAILURE() << feedback;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), fmt::format("feedback \"{}\": alpha must be a decimal from 0 to 1, not \"{}\"",
                                          feedback, alpha));
    }
  }
  for (const char* feedback : {"diana", "diana:"}) {
    try {
      make_link("fp16", feedback);
      ADD_FAILURE() << feedback;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(),
                fmt::format("feedback \"{}\": expected diana:N where N is a decimal from 0 to 1", feedback));
    }
  }
}

TEST(Feedback, WhatTheReceiverGetsSharesNothingWithItsState) {
  const std::vector<int64_t> ids = {4, 2};
  for (const char* feedback : {"ef21", "diana:0.5", "aq-sgd"}) {
    for (const char* codec : {"topk:0.5", "fp16"}) {
      SCOPED_TRACE(fmt::format("{}, {}", feedback, codec));
      Pair pair(feedback, codec);
      for (int message = 0; message < 2; ++message) {
        at::Tensor seen = pair.send(at::randn({2, 8}), {.seed = 3, .ids = ids});
        const auto before = pair.decoder_state();
        ASSERT_FALSE(before.empty());
        seen.fill_(100);
        expect_equal(pair.decoder_state(), before);
      }
    }
  }
}

class EveryFeedback : public testing::TestWithParam<const char*> {};

/// What a frozen link of 12 elements a row shows of x when its state's rows are `state`.
at::Tensor frozen(const std::string& feedback, const Codec& codec, const at::Tensor& x,
                  const at::Tensor& state) {
  if (feedback == "ef" || feedback == "ef:0.25") return codec.reconstruct(x + state, {.seed = 3});
  if (feedback == "ef21" || feedback == "diana:0.5") return state + codec.reconstruct(x - state, {.seed = 3});
  return largest(x, 2) + largest(state, 1);  // of topk:0.25
}

TEST_P(EveryFeedback, EvaluationReadsTheStateAndLeavesItAlone) {
  const bool mixed = std::string(GetParam()) == "ef-mixed";
  for (const auto& spec : mixed ? std::vector<std::string>{"topk:0.25"} : kCodecs) {
    const auto codec = make_codec(spec);
    at::manual_seed(7);
    Pair pair(GetParam(), spec);
    for (int message = 0; message < 3; ++message) pair.send(at::randn({4, 12}));
    const auto encoder = pair.encoder_state();
    const auto decoder = pair.decoder_state();
    const at::Tensor state = at::cat({encoder.begin()->second, at::zeros({5, 12})});
    for (const int64_t rows : {4, 2, 9}) {  // 9: a larger batch than training has seen
      const at::Tensor x = at::randn({rows, 12});
      const at::Tensor expected = frozen(GetParam(), *codec, x, state.narrow(0, 0, rows));
      EXPECT_TRUE(at::equal(pair.send(x, 0, true), expected)) << spec << ", " << rows << " rows";
    }
    expect_equal(pair.encoder_state(), encoder);
    expect_equal(pair.decoder_state(), decoder);
  }
}

TEST_P(EveryFeedback, MicroBatchesUseTheRowsOfTheBatch) {
  for (const auto& codec : codecs_of(GetParam())) {
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

TEST_P(EveryFeedback, AMessageThatCannotBeSentIsAnError) {
  Pair pair(GetParam(), codecs_of(GetParam()).front());
  pair.send(at::randn({2, 6}));
  EXPECT_THROW(pair.send(at::full({2, 6}, std::numeric_limits<float>::quiet_NaN())), NumericError);
}

INSTANTIATE_TEST_SUITE_P(Links, EveryFeedback,
                         testing::Values("ef", "ef:0.25", "ef21", "diana:0.5", "ef-mixed"));

}  // namespace
}  // namespace strait
