#include "strait/boundary/channel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "strait/boundary/channel_endpoints.h"
#include "strait/boundary/codec_trial.h"
#include "strait/codecs/sparsifier.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

ChannelSpec spec(const std::string& codec) { return {"layer2", 1, Direction::gradient, make_link(codec)}; }

MessageContext context(uint64_t step, uint32_t micro_batch = 0) {
  return {.seed = 1, .step = step, .micro_batch = micro_batch};
}

constexpr MessageMode kTraining{.training = true, .compressed = true};
constexpr MessageMode kWarmUp{.training = true, .compressed = false};
constexpr MessageMode kEvaluationOn{.training = false, .compressed = true};
constexpr MessageMode kEvaluationOff{.training = false, .compressed = false};

TEST(Channel, TheReceiverSeesTheOperatorInEveryMode) {
  Sender sender(spec("quant:2"));
  Receiver receiver(spec("quant:2"));
  const auto codec = make_codec("quant:2");
  for (uint64_t step = 0;
       const MessageMode mode : {kTraining, kEvaluationOff, kWarmUp, kEvaluationOn, kTraining}) {
    const at::Tensor x = at::randn({4, 3, 5});
    Buffer frame = sender.encode(x, context(step), mode);
    EXPECT_LE(frame.size(), receiver.frame_bound(meta_of(x)));
    const at::Tensor seen = receiver.decode(std::move(frame), meta_of(x), context(step), mode);
    EXPECT_TRUE(at::equal(seen, mode.compressed ? codec->reconstruct(x, context(step)) : x)) << step;
    ++step;
  }
  const Traffic traffic = sender.take_traffic();
  EXPECT_EQ(traffic.messages, 3U);
  EXPECT_EQ(traffic.raw_bytes, 3U * 60 * 4);
  EXPECT_EQ(traffic.wire_bytes, 2 * (kFrameHeaderSize + 8 + 15) + kFrameHeaderSize + 240);
  EXPECT_EQ(sender.take_traffic().messages, 0U);
}

TEST(Channel, ItsLinkIsReplacedBetweenMessages) {
  ChannelEndpoints channel(spec("quant:8"));
  const at::Tensor x = at::randn({4, 3, 5});
  for (uint64_t step = 0; const char* codec : {"quant:2", "topk:0.2", "none", "quant:2"}) {
    channel.set_link(make_link(codec));
    EXPECT_EQ(channel.link->codec().id(), make_codec(codec)->id());
    EXPECT_TRUE(at::equal(channel.cross(x, context(step)), make_codec(codec)->reconstruct(x, context(step))))
        << codec;
    EXPECT_TRUE(at::equal(channel.cross(x, context(step), kEvaluationOn),
                          make_codec(codec)->reconstruct(x, context(step))))
        << codec;
    EXPECT_TRUE(at::equal(channel.cross(x, context(step), kEvaluationOff), x)) << codec;
    ++step;
  }
  EXPECT_EQ(channel.take_traffic().messages, 4U);
}

TEST(Channel, EndsWithDifferentLinksDoNotUnderstandEachOther) {
  Sender sender(spec("quant:4"));
  Receiver receiver(spec("quant:4"));
  const at::Tensor x = at::randn({4, 6});
  sender.set_link(make_link("topk:0.5"));
  EXPECT_THROW(receiver.decode(sender.encode(x, context(0), kTraining), meta_of(x), context(0), kTraining),
               WireError);
}

TEST(Channel, MessagesOfTrainingAreKeptAsTheyWereAndAsTheyArrive) {
  Sender sender(spec("quant:2"));
  Receiver receiver(spec("quant:2"));
  const auto cross = [&](const at::Tensor& x, const MessageContext& of, MessageMode mode) {
    return receiver.decode(sender.encode(x, of, mode), meta_of(x), of, mode);
  };
  cross(at::randn({4, 6}), context(0), kTraining);
  EXPECT_TRUE(sender.take_kept().empty());
  sender.keep_messages();
  receiver.keep_messages();
  at::Tensor x = at::randn({4, 6});
  const at::Tensor before = x.clone();
  cross(at::randn({2, 6}), context(1), kEvaluationOn);
  cross(at::randn({4, 6}), context(2, 3), {.training = true, .diagnosed = false});  // with previous weights
  const at::Tensor arrived = cross(x, context(2, 3), kTraining);
  cross(at::randn({4, 6}), context(2, 4), kTraining);
  x.zero_();
  const auto sent = sender.take_kept();
  const auto received = receiver.take_kept();
  ASSERT_EQ(sent.size(), 2U);
  ASSERT_EQ(received.size(), 2U);
  EXPECT_TRUE(at::equal(sent[0].tensor, before));
  EXPECT_TRUE(at::equal(received[0].tensor, arrived));
  EXPECT_FALSE(at::equal(arrived, before));
  for (const auto* kept : {&sent, &received}) {
    EXPECT_EQ(kept->at(0).context.step, 2U);
    EXPECT_EQ(kept->at(0).context.micro_batch, 3U);
    EXPECT_EQ(kept->at(1).context.micro_batch, 4U);
    EXPECT_EQ(kept->at(0).context.boundary, 1);
    EXPECT_EQ(kept->at(0).context.direction, Direction::gradient);
  }
  cross(before, context(3), kTraining);
  EXPECT_TRUE(sender.take_kept().empty());
  EXPECT_TRUE(receiver.take_kept().empty());
}

TEST(TryLink, SaysWhatTheMessageWouldCost) {
  const at::Tensor x = at::randn({8, 16});
  const KeptMessage message{x, context(5)};
  for (const char* codec : {"none", "quant:4", "quant:4,rounding=stochastic", "topk:0.25"}) {
    const CodecTrial trial = try_link(message, make_link(codec));
    Sender sender({"b", 0, Direction::activation, make_link(codec)});
    EXPECT_EQ(trial.bytes, sender.encode(x, context(5), kTraining).size()) << codec;
    const at::Tensor seen = make_codec(codec)->reconstruct(x, context(5));
    EXPECT_NEAR(trial.relative_error, ((seen - x).norm() / x.norm()).item<double>(), 1e-6) << codec;
    EXPECT_GT(trial.encode_seconds, 0);
    EXPECT_GT(trial.decode_seconds, 0);
  }
}

class ChannelOfFeedback : public testing::TestWithParam<std::string> {
 protected:
  ChannelSpec spec(const StoreOptions& store = {}) const {
    return {"layer2", 1, Direction::activation, make_link(kCodec, GetParam(), store), false};
  }
  MessageContext context(uint64_t step) const {
    return {.seed = 1, .step = step, .ids = ids_, .previous = &previous_};
  }

  /// What the channel makes of a context.
  static MessageContext whole(MessageContext context) {
    context.boundary = 1;
    return context;
  }

  static constexpr const char* kCodec = "topk:0.25,index=bitmap";
  std::vector<int64_t> ids_ = {3, 1, 4, 0};
  at::Tensor previous_ = at::randn({4, 3, 8});
};

/// What is seen in training is what the link alone gives of the training messages: neither warm-up nor
/// evaluation moves it, and neither uses it.
TEST_P(ChannelOfFeedback, TrainingMovesTheLinkAndNothingElseDoes) {
  Sender sender(spec());
  Receiver receiver(spec());
  test::Pair link(GetParam(), kCodec);
  const auto codec = make_codec(kCodec);
  uint64_t step = 0;
  uint64_t compressed_bytes = 0;
  for (const MessageMode mode : {kWarmUp, kEvaluationOff, kWarmUp, kTraining, kEvaluationOn, kTraining,
                                 kEvaluationOff, kEvaluationOn, kTraining}) {
    const at::Tensor x = at::randn({4, 3, 8});
    Buffer frame = sender.encode(x, context(step), mode);
    const size_t bytes = frame.size() - kFrameHeaderSize;
    const at::Tensor seen = receiver.decode(std::move(frame), meta_of(x), context(step), mode);
    if (!mode.compressed) {
      EXPECT_TRUE(at::equal(seen, x)) << step;
      EXPECT_EQ(bytes, static_cast<size_t>(x.nbytes()));
    } else if (mode.training) {
      EXPECT_TRUE(at::equal(seen, link.send(x, whole(context(step))))) << step;
      EXPECT_EQ(bytes, link.bytes());
      compressed_bytes += bytes;
    } else {
      EXPECT_TRUE(at::equal(seen, codec->reconstruct(x, {}))) << step;
    }
    ++step;
  }
  const Traffic traffic = sender.take_traffic();
  EXPECT_EQ(traffic.messages, 5U);
  EXPECT_EQ(traffic.wire_bytes, 5 * kFrameHeaderSize + 2 * 4 * 24 * 4 + compressed_bytes);
}

TEST_P(ChannelOfFeedback, ARefusedMessageChangesNothing) {
  Sender sender(spec());
  Receiver receiver(spec());
  test::Pair link(GetParam(), kCodec);
  for (uint64_t step = 0; step < 4; ++step) {
    const at::Tensor x = at::randn({4, 3, 8});
    at::Tensor bad = x.clone();
    bad[3][2][7] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(sender.encode(bad, context(step), kTraining), NumericError);
    Buffer frame = sender.encode(x, context(step), kTraining);
    const at::Tensor seen = receiver.decode(std::move(frame), meta_of(x), context(step), kTraining);
    EXPECT_TRUE(at::equal(seen, link.send(x, whole(context(step))))) << step;
  }
  EXPECT_EQ(sender.take_traffic().messages, 4U);
}

INSTANTIATE_TEST_SUITE_P(Links, ChannelOfFeedback, testing::ValuesIn(link_samples()));

TEST(Channel, TheWarmUpFillsBuffersWhereItShall) {
  const std::vector<int64_t> ids = {3, 1, 4, 0};
  for (const bool fills : {false, true}) {
    StoreOptions store;
    store.fill = fills ? "warmup" : "first_visit";
    const ChannelSpec both{"layer2", 1, Direction::activation,
                           make_link("quant:8,scope=sample", "aq-sgd", store)};
    Sender sender(both);
    Receiver receiver(both);
    for (const MessageMode mode : {kWarmUp, kEvaluationOff, kTraining}) {
      const at::Tensor x = at::randn({4, 24});
      Buffer frame = sender.encode(x, {.ids = ids}, mode);
      const size_t raw = 4 * 24 * 4;
      EXPECT_EQ(frame.size() - kFrameHeaderSize, mode.compressed && fills ? 4U * (8 + 24) : raw);
      EXPECT_TRUE(at::allclose(receiver.decode(std::move(frame), meta_of(x), {.ids = ids}, mode), x, 0, 0.05));
    }
  }
}

/// The indices of a gradient that is refused are there for the next one.
TEST(Channel, ARefusedGradientLeavesThePositions) {
  const auto indices = std::make_shared<IndexMemory>();
  ChannelSpec gradients = spec("topk:0.5");
  gradients.link = make_reuse_link(make_codec("topk:0.5"));
  gradients.indices = indices;
  IndexSet positions{make_codec("topk:0.5")->sparsifier()->shape_of({{2, 4}}), {0b0101, 0b0110}};
  indices->keep(2, positions);
  Sender sender(gradients);
  EXPECT_THROW(sender.encode(at::full({2, 4}, NAN), context(0, 2), kTraining), NumericError);
  EXPECT_NO_THROW(sender.encode(at::ones({2, 4}), context(0, 2), kTraining));
  EXPECT_EQ(indices->find(2), nullptr);
}

TEST(Channel, ALostMessageIsNoticed) {
  Sender sender(spec("none"));
  Receiver receiver(spec("none"));
  const at::Tensor x = at::randn({2, 2});
  sender.encode(x, context(0), kTraining);
  try {
    receiver.decode(sender.encode(x, context(1), kTraining), meta_of(x), context(1), kTraining);
    FAIL();
  } catch (const WireError& error) {
    EXPECT_STREQ(error.what(),
                 "boundary layer2, gradient, micro-batch 0, step 1: frame has sequence 1, expected 0");
  }
}

TEST(Channel, ADisagreementAboutTheModeIsNoticed) {
  Sender sender(spec("fp16"));
  Receiver receiver(spec("fp16"));
  const at::Tensor x = at::randn({2, 2});
  EXPECT_THROW(receiver.decode(sender.encode(x, context(0), kTraining), meta_of(x), context(0), kWarmUp),
               WireError);
}

TEST(Channel, ADamagedFrameIsNoticedUnlessTrusted) {
  Sender sender(spec("none"));
  const at::Tensor x = at::ones({2, 2});
  const auto damaged = [&] {
    Buffer frame = Sender(spec("none")).encode(x, context(0), kTraining);
    frame.bytes()[kFrameHeaderSize + 5] ^= std::byte{1};
    return frame;
  };
  EXPECT_THROW(Receiver(spec("none")).decode(damaged(), meta_of(x), context(0), kTraining), WireError);
  EXPECT_NO_THROW(
      Receiver(spec("none")).decode(damaged(), meta_of(x), context(0), kTraining, FrameCheck::trust));
}

TEST(Channel, ABadValueNamesBoundaryDirectionMicroBatchAndStep) {
  Sender sender(spec("quant:4"));
  try {
    sender.encode(at::full({1, 3}, std::numeric_limits<float>::infinity()), context(12, 3), kTraining);
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("boundary layer2, gradient, micro-batch 3, step 12: "))
        << error.what();
  }
}

TEST(Channel, AShapeThatTheCodecDoesNotTakeNamesTheBoundary) {
  const std::string complaint =
      "boundary layer2, gradient: codec columns:0.5 keeps channels and takes messages of two dimensions or "
      "more, "
      "found shape [9]";
  try {
    Sender(spec("columns:0.5")).encode(at::ones({9}), context(0), kTraining);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), complaint);
  }
  try {
    Receiver(spec("columns:0.5")).frame_bound({{9}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.what(), complaint);
  }
}

}  // namespace
}  // namespace strait
