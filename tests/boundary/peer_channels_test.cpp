#include "strait/boundary/peer_channels.h"

#include "tests/links/pair.h"

namespace strait {
namespace {

using test::state_of;

constexpr int kRanks = 3;
constexpr MessageMode kMode = {};

PeerChannels channels_of(int rank, const std::string& codec = "topk:0.25",
                         const std::string& feedback = "ef21") {
  const auto link = make_link(codec, feedback);
  return {rank, kRanks, [&](int from) {
            return ChannelSpec{"peers", static_cast<uint16_t>(from), Direction::gradient, link};
          }};
}

Buffer copy_of(const Buffer& frame) {
  Buffer copy(frame.size());
  copy.resize(frame.size());
  std::ranges::copy(frame.bytes(), copy.bytes().begin());
  return copy;
}

/// The sum is that of the estimates, which the test keeps by itself, in the order of ranks; all ranks get its
/// bits.
TEST(PeerChannels, AllRanksGetTheSumInTheOrderOfRanks) {
  std::vector<PeerChannels> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(channels_of(rank));
  std::vector<at::Tensor> estimates(kRanks, at::zeros({1, 40}));
  const auto codec = make_codec("topk:0.25");
  for (uint64_t step = 0; step < 3; ++step) {
    const MessageContext context{.seed = 1, .step = step};
    std::vector<Buffer> frames;
    at::Tensor expected;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const at::Tensor x = at::randn({1, 40}) * static_cast<double>(1 + rank);
      frames.push_back(ranks[rank].sender().encode(x, context, kMode));
      estimates[rank] = estimates[rank] + codec->reconstruct(x - estimates[rank], {});
      expected = rank == 0 ? estimates[rank].clone() : expected + estimates[rank];
    }
    for (PeerChannels& each : ranks) {
      std::vector<int> asked;
      const auto frame = [&](int from) {
        asked.push_back(from);
        return copy_of(frames[static_cast<size_t>(from)]);
      };
      EXPECT_TRUE(at::equal(each.sum(frame, {{1, 40}}, context, kMode), expected)) << step;
      EXPECT_EQ(asked, (std::vector<int>{0, 1, 2}));
    }
  }
  EXPECT_EQ(ranks[1].sender().take_traffic().messages, 3U);
  EXPECT_GT(ranks[1].take_received().decode_seconds, 0);
}

/// What ranks draw at both ends, and what senders start from, goes with the message: all ranks get the same
/// sums, and with error feedback nothing is lost for ever.
TEST(PeerChannels, ServesCodecsThatDrawAndThatStartWarm) {
  for (const char* codec : {"random:0.25", "lowrank:2,matrix=square", "lowrank:2,matrix=square,warm=yes"}) {
    SCOPED_TRACE(codec);
    std::vector<PeerChannels> ranks;
    for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(channels_of(rank, codec, "ef"));
    at::Tensor sent = at::zeros({1, 90});
    at::Tensor received = at::zeros({1, 90});
    for (uint64_t step = 0; step < 5; ++step) {
      const MessageContext context{.seed = 1, .step = step};
      std::vector<Buffer> frames;
      for (PeerChannels& rank : ranks) {
        const at::Tensor x = at::randn({1, 90});
        sent += x;
        frames.push_back(rank.sender().encode(x, context, kMode));
      }
      std::vector<at::Tensor> sums;
      for (PeerChannels& rank : ranks) {
        sums.push_back(rank.sum([&](int from) { return copy_of(frames[static_cast<size_t>(from)]); }, {{1, 90}},
                                context, kMode));
        EXPECT_TRUE(at::equal(sums.back(), sums.front()));
      }
      received += sums.front();
    }
    for (PeerChannels& rank : ranks) received += state_of(rank.sender()).at("residual");
    EXPECT_TRUE(at::allclose(received, sent, 1e-4, 1e-4));
  }
}

TEST(PeerChannels, StateIsTheSendersAndThatOfEveryRanksMessages) {
  PeerChannels channels = channels_of(1);
  const MessageContext context{.seed = 1};
  const at::Tensor x = at::randn({1, 40});
  const Buffer own = channels.sender().encode(x, context, kMode);
  channels.receiver(1).decode(copy_of(own), meta_of(x), context, kMode);
  const auto state = state_of(channels);
  ASSERT_EQ(state.count("sender.estimate"), 1U);
  ASSERT_EQ(state.count("receiver-1.estimate"), 1U);
  EXPECT_TRUE(at::equal(state.at("sender.estimate"), state.at("receiver-1.estimate")));
}

TEST(PeerChannels, OfTwoRanksOneDoesNotReadTheOthersMessage) {
  PeerChannels here = channels_of(0);
  const at::Tensor x = at::randn({1, 40});
  const Buffer frame = channels_of(1).sender().encode(x, {}, kMode);
  EXPECT_THROW(here.receiver(2).decode(copy_of(frame), meta_of(x), {}, kMode), WireError);
}

}  // namespace
}  // namespace strait
