#include "strait/boundary/channel_endpoints.h"

#include "strait/boundary/boundary.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

using test::expect_equal;
using test::state_of;

const std::vector<int64_t> kSamples = {3, 1, 4};

ChannelSpec channel_with(const std::string& feedback) {
  return {"layer2", 1, Direction::gradient, make_link("topk:0.25,index=bitmap", feedback)};
}

/// Crossing in one process gives what two processes give, which share nothing but the frame: values, bytes,
/// state.
TEST(ChannelEndpoints, CrossingIsEncodingThereAndDecodingHere) {
  for (const auto& feedback : link_samples()) {
    SCOPED_TRACE(feedback);
    ChannelEndpoints one(channel_with(feedback));
    ChannelEndpoints there(channel_with(feedback), channel_with(feedback), {.sender = true, .receiver = false});
    ChannelEndpoints here(channel_with(feedback), channel_with(feedback), {.sender = false, .receiver = true});
    EXPECT_FALSE(there.receiver);
    EXPECT_FALSE(here.sender);
    uint64_t step = 0;
    for (const MessageMode mode :
         {MessageMode{}, {.training = true, .compressed = false}, {.training = false}, {}}) {
      const at::Tensor x = at::randn({3, 2, 8});
      const MessageContext context{.seed = 5, .step = step++, .ids = kSamples};
      Buffer frame = there.sender->encode(x, context, mode);
      const at::Tensor seen = here.receiver->decode(std::move(frame), meta_of(x), context, mode);
      EXPECT_TRUE(at::equal(one.cross(x, context, mode), seen)) << step;
    }
    expect_equal(state_of(*one.receiver), state_of(*here.receiver));
    auto apart = state_of(there);
    apart.merge(state_of(here));
    for (const auto& [name, value] : state_of(one)) {  // what both endpoints would have, may be there once
      EXPECT_TRUE(at::equal(value, apart.at(name))) << name;
    }
    const Traffic traffic = one.take_traffic();
    const Traffic sent = there.take_traffic();
    EXPECT_EQ(traffic.messages, 3U) << "of training";
    EXPECT_EQ(traffic.raw_bytes, sent.raw_bytes);
    EXPECT_EQ(traffic.wire_bytes, sent.wire_bytes);
    EXPECT_GT(traffic.encode_seconds, 0);
    EXPECT_GT(traffic.decode_seconds, 0);
    EXPECT_EQ(one.take_traffic().messages, 0U);
    EXPECT_EQ(here.take_traffic().messages, 0U) << "the sender counts them";
  }
}

TEST(ChannelEndpoints, NothingCrossesToAnotherProcess) {
  ChannelEndpoints there(channel_with("ef"), channel_with("ef"), {.sender = true, .receiver = false});
  ChannelEndpoints nowhere(channel_with("ef"), channel_with("ef"), {.sender = false, .receiver = false});
  EXPECT_THROW(there.cross(at::randn({3, 8}), {}), InternalError);
  EXPECT_THROW(nowhere.cross(at::randn({3, 8}), {}), InternalError);
  EXPECT_TRUE(state_of(nowhere).empty());
  EXPECT_EQ(nowhere.take_traffic().messages, 0U);
  EXPECT_EQ(there.link->slots(), Slots::rows);
}

/// A gradient crosses at the positions of its micro-batch's activation, whichever crosses last.
TEST(BoundaryEndpoints, GradientsCrossAtThePositionsOfTheirActivations) {
  BoundaryEndpoints cut("cut", 0, {make_link("topk:0.25"), make_reuse_link(make_codec("topk:0.25"))}, 0, {});
  const at::Tensor first = at::tensor({9.F, 0.F, 1.F, 2.F}).view({1, 4});
  const at::Tensor second = at::tensor({0.F, 1.F, 9.F, 2.F}).view({1, 4});
  EXPECT_EQ(&cut.channel(Direction::activation), &cut.activations);
  EXPECT_EQ(&cut.channel(Direction::gradient), &cut.gradients);
  cut.activations.cross(first, {.micro_batch = 0});
  cut.activations.cross(second, {.micro_batch = 1});
  const at::Tensor gradient = at::tensor({1.F, 2.F, 3.F, 4.F}).view({1, 4});
  EXPECT_TRUE(at::equal(cut.gradients.cross(gradient, {.micro_batch = 0}),
                        at::tensor({1.F, 0.F, 0.F, 0.F}).view({1, 4})));
  EXPECT_TRUE(at::equal(cut.gradients.cross(gradient, {.micro_batch = 1}),
                        at::tensor({0.F, 0.F, 3.F, 0.F}).view({1, 4})));
}

}  // namespace
}  // namespace strait
