#include "strait/boundary/channel.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

namespace strait {
namespace {

ChannelSpec spec(const std::string& codec) {
  return {"layer2", 1, Direction::gradient, make_link("none", make_codec(codec))};
}

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

}  // namespace
}  // namespace strait
