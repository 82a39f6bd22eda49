// Wires, latency, codec threads and what a step is made of.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "strait/pipeline/schedules.h"
#include "strait/pipeline/simulate.h"

namespace strait {
namespace {

/// Two stages that take 1 s forward and 2 s back; messages of 10 bytes, 3 s to encode, 4 s to decode.
CostModel two_stages() {
  auto costs = CostModel::uniform(2, 1, 2, {.bytes = 10, .encode_seconds = 3, .decode_seconds = 4});
  costs.link = {.bytes_per_second = 2, .latency_seconds = 7};
  return costs;
}

void expect_shares(const TimeShares& found, const TimeShares& expected) {
  EXPECT_DOUBLE_EQ(found.compute, expected.compute);
  EXPECT_DOUBLE_EQ(found.bubble, expected.bubble);
  EXPECT_DOUBLE_EQ(found.codec, expected.codec);
  EXPECT_DOUBLE_EQ(found.wire, expected.wire);
  EXPECT_DOUBLE_EQ(found.latency, expected.latency);
}

TEST(Lanes, OneMicroBatchPassesThroughAllOfThem) {
  const Plan plan = lower(gpipe(2, 1));
  for (const auto place : {CodecPlace::own_threads, CodecPlace::compute_thread}) {
    auto costs = two_stages();
    costs.codec_place = place;
    const auto result = simulate(plan, costs);
    // 1 + (3 + 5 + 7 + 4) + 1 + 2 + (3 + 5 + 7 + 4) + 2
    EXPECT_DOUBLE_EQ(result.makespan, 44);
    expect_shares(result.shares, {.compute = 3, .bubble = 3, .codec = 14, .wire = 10, .latency = 14});
    for (const RankBusy& busy : result.busy) {
      EXPECT_DOUBLE_EQ(busy.compute, 3);
      EXPECT_DOUBLE_EQ(busy.encode, 3);
      EXPECT_DOUBLE_EQ(busy.decode, 4);
      EXPECT_DOUBLE_EQ(busy.wire, 5);
    }
  }
}

TEST(Lanes, ThreadsForTheCodecLetTheComputationGoOn) {
  const Plan plan = lower(forward_only(2, 2));
  auto costs = two_stages();
  // Encoded from 1 to 4 and from 4 to 7, sent until 9 and 14, there at 16 and 21, decoded until 20 and 25.
  EXPECT_DOUBLE_EQ(simulate(plan, costs).makespan, 26);
  costs.codec_place = CodecPlace::compute_thread;
  // Encoded from 1 to 4 and from 5 to 8, sent until 9 and 14; decoded from 16 to 20 and from 21 to 25.
  const auto result = simulate(plan, costs);
  EXPECT_DOUBLE_EQ(result.makespan, 26);
  EXPECT_DOUBLE_EQ(result.busy[0].encode, 6);
  // A slow encoder that has the wire to itself: 2 * 20 s beside the second forward, or behind it.
  costs.activation[0] = {.bytes = 0, .encode_seconds = 20, .decode_seconds = 0};
  EXPECT_DOUBLE_EQ(simulate(plan, costs).makespan, 1 + 20 + 1 + 20 + 7 + 1);
  costs.codec_place = CodecPlace::own_threads;
  EXPECT_DOUBLE_EQ(simulate(plan, costs).makespan, 1 + 20 + 20 + 7 + 1);
}

TEST(Lanes, AllThatARankSendsSharesItsWire) {
  const Plan plan = lower(gpipe(3, 1));
  auto costs = CostModel::uniform(3, 1, 1, {.bytes = 1});
  costs.link.bytes_per_second = 1;
  EXPECT_DOUBLE_EQ(simulate(plan, costs).makespan, 6 + 4);
  const Plan two = lower(one_f_one_b(3, 2));
  costs.activation = {{.bytes = 0}, {.bytes = 100}};
  costs.gradient = {{.bytes = 1}, {.bytes = 0}};
  const auto result = simulate(two, costs);
  // Activations leave rank 1 from 2 to 102 and from 102 to 202; forward and backward of the last stage until
  // 104 and 204; rank 1 goes back until 105 and 205, and its first gradient waits for the wire until 202.
  const auto gradient = std::ranges::find(result.steps, Action{Op::send_gradient, 1, 0}, &Step::action);
  ASSERT_NE(gradient, result.steps.end());
  EXPECT_DOUBLE_EQ(gradient->start, 105);
  EXPECT_DOUBLE_EQ(gradient->end, 203);
  EXPECT_DOUBLE_EQ(result.makespan, 207);
  EXPECT_EQ(result.shares.largest(), "wire");
}

TEST(Lanes, DecodingKeepsToTheOrderOfThePlan) {
  // Rank 1 of three receives two activations before its first gradient. With slow activations, that gradient
  // waits behind the second one, though rank 2 sent it long before.
  const Plan plan = lower(parse_plan("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1\n2F0 2B0 2F1 2B1\n"));
  auto costs = CostModel::uniform(3, 1, 1);
  costs.activation[0] = {.bytes = 50, .decode_seconds = 10};
  costs.gradient[1] = {.decode_seconds = 10};
  costs.link.bytes_per_second = 1;
  const auto result = simulate(plan, costs);
  // Activations leave from 1 to 51 and to 101 and are decoded until 61 and 111; rank 2 is done with the first
  // at 64. Rank 1's gradients are decoded until 121 and 131, its backwards end at 122 and 132.
  const auto received = std::ranges::find(result.steps, Action{Op::recv_gradient, 1, 0}, &Step::action);
  ASSERT_NE(received, result.steps.end());
  EXPECT_DOUBLE_EQ(received->start, 121);
  EXPECT_DOUBLE_EQ(result.makespan, 133);
  EXPECT_DOUBLE_EQ(result.busy[1].decode, 40);
}

TEST(Lanes, EncodingAndDecodingDoNotWaitForEachOther) {
  // Rank 1 decodes the second activation while it encodes the first gradient.
  const Plan plan = lower(one_f_one_b(2, 2));
  auto costs = CostModel::uniform(2, 1, 1);
  costs.activation[0].decode_seconds = 10;
  costs.gradient[0].encode_seconds = 10;
  // Decoded until 11 and 21; gradients at 13 and 23, encoded until 23 and 33.
  const auto result = simulate(plan, costs);
  EXPECT_DOUBLE_EQ(result.makespan, 34);
  EXPECT_DOUBLE_EQ(result.shares.codec, 30);
}

TEST(Lanes, MessagesWithinARankCrossNoWire) {
  auto costs = CostModel::uniform(2, 1, 2, {.bytes = 1e9, .encode_seconds = 3, .decode_seconds = 4});
  costs.link = {.bytes_per_second = 1, .latency_seconds = 100};
  const auto result = simulate(one_process(lower(gpipe(2, 1))), costs);
  EXPECT_DOUBLE_EQ(result.makespan, 6 + 14);
  expect_shares(result.shares, {.compute = 6, .bubble = 0, .codec = 14, .wire = 0, .latency = 0});
}

TEST(Lanes, GPipeWithoutMessagesHasItsClosedForm) {
  for (const int stages : {1, 2, 5, 8}) {
    for (const int micro_batches : {1, 3, 8}) {
      const auto result = simulate(lower(gpipe(stages, micro_batches)), CostModel::uniform(stages, 0.5, 1.25));
      EXPECT_DOUBLE_EQ(result.makespan, (stages - 1 + micro_batches) * 1.75);
      expect_shares(result.shares, {.compute = micro_batches * 1.75, .bubble = (stages - 1) * 1.75});
    }
  }
}

/// Costs between 0 and 1, some of them 0.
class RandomCosts {
 public:
  explicit RandomCosts(uint32_t seed) : random_(seed) {}

  CostModel model(int stages) {
    CostModel costs = CostModel::uniform(stages, 0, 0);
    for (auto* seconds : {&costs.forward, &costs.backward}) {
      for (double& value : *seconds) value = draw();
    }
    for (auto* messages : {&costs.activation, &costs.gradient}) {
      for (auto& message : *messages) message = {draw(), draw() / 4, draw() / 4};
    }
    costs.link = {.bytes_per_second = 0.5 + draw(), .latency_seconds = draw()};
    costs.codec_place = random_() % 2 == 0 ? CodecPlace::own_threads : CodecPlace::compute_thread;
    return costs;
  }

 private:
  double draw() { return random_() % 4 == 0 ? 0 : static_cast<double>(random_() % 1000) / 1000; }
  std::mt19937 random_;
};

TEST(Lanes, NoStepIsShorterThanItsBusiestPart) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    RandomCosts random(seed);
    const int stages = 2 * static_cast<int>(1 + seed % 4);
    const Plan plan = lower(seed % 2 == 0 ? one_f_one_b(stages, 7) : interleaved({stages, 7, 2}));
    const CostModel costs = random.model(stages);
    const auto result = simulate(plan, costs);
    EXPECT_EQ(result.busy.size(), plan.ranks.size());
    for (const RankBusy& busy : result.busy) {
      const bool shared = costs.codec_place == CodecPlace::compute_thread;
      EXPECT_GE(result.makespan + 1e-9, shared ? busy.compute + busy.encode + busy.decode : busy.compute);
      EXPECT_GE(result.makespan + 1e-9, std::max(busy.encode, busy.decode));
      EXPECT_GE(result.makespan + 1e-9, busy.wire);
    }
    EXPECT_NEAR(result.shares.total(), result.makespan, 1e-9) << "nothing on the critical path waits";
    size_t actions = 0;
    for (const auto& rank : plan.ranks) actions += rank.size();
    EXPECT_EQ(result.steps.size(), actions);
    EXPECT_TRUE(std::ranges::is_sorted(result.steps, {}, &Step::start));
    for (const Step& step : result.steps) EXPECT_LE(step.start, step.end);
  }
}

TEST(Lanes, FasterLinksAndCodecsNeverTurnOutSlower) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Plan plan = lower(one_f_one_b(4, 6));
    CostModel costs = RandomCosts(seed).model(4);
    const double before = simulate(plan, costs).makespan;
    costs.link.latency_seconds /= 2;
    const double nearer = simulate(plan, costs).makespan;
    EXPECT_LE(nearer, before + 1e-9);
    costs.link.bytes_per_second = std::numeric_limits<double>::infinity();
    const double unlimited = simulate(plan, costs).makespan;
    EXPECT_LE(unlimited, nearer + 1e-9);
    for (auto& message : costs.gradient) message.decode_seconds /= 3;
    EXPECT_LE(simulate(plan, costs).makespan, unlimited + 1e-9);
  }
}

}  // namespace
}  // namespace strait
