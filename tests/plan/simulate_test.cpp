#include "strait/pipeline/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "strait/base/error.h"
#include "strait/pipeline/schedules.h"
#include "strait/pipeline/validate.h"

namespace strait {
namespace {

using ::testing::AllOf;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One micro-batch over two stages: 0 computes 1 s, sends 10 s, 1 computes 2 + 3 s, sends 20 s, 0 computes 4 s.
// A byte takes a second.
const CostModel kUnequal{.forward = {1, 2},
                         .backward = {4, 3},
                         .activation = {{.bytes = 10}},
                         .gradient = {{.bytes = 20}},
                         .link = {.bytes_per_second = 1}};

TEST(Simulate, TimesOfOneMicroBatch) {
  const auto result = simulate(lower(gpipe(2, 1)), kUnequal);
  std::string steps;
  for (const Step& step : result.steps) {
    steps += fmt::format("{}@{}:{}-{} ", to_text(step.action), step.rank, step.start, step.end);
  }
  EXPECT_EQ(steps,
            "0F0@0:0-1 0SEND_F0@0:1-11 1RECV_F0@1:11-11 1F0@1:11-13 1B0@1:13-16 1SEND_B0@1:16-36 "
            "0RECV_B0@0:36-36 0B0@0:36-40 ");
  EXPECT_EQ(result.makespan, 40);
  EXPECT_EQ(simulate_valid(lower(gpipe(2, 1)), kUnequal).makespan, 40);
  EXPECT_THAT(result.bubble_share, ElementsAre(DoubleEq(35.0 / 40), DoubleEq(35.0 / 40)));
}

TEST(Simulate, AWireCarriesOneMessageAtATimeAndSendsDoNotBlock) {
  // Forwards end at 1, 2, 3; their messages arrive at 11, 21, 31; the last forward ends at 33.
  const auto result = simulate(lower(forward_only(2, 3)), kUnequal);
  EXPECT_EQ(result.makespan, 33);
  EXPECT_THAT(result.bubble_share, ElementsAre(DoubleEq(30.0 / 33), DoubleEq(27.0 / 33)));
}

TEST(Simulate, TheTwoDirectionsOfABoundaryDoNotDelayEachOther) {
  auto costs = CostModel::uniform(2, 1, 1, {.bytes = 100});
  costs.link.bytes_per_second = 1;
  // Gradient 0 leaves at 103 while activation 1 (101 to 201) is under way; it arrives at 203.
  const auto result = simulate(lower(one_f_one_b(2, 2)), costs);
  EXPECT_EQ(result.makespan, 304);
}

TEST(Simulate, SeveralStagesOnOneRankShareItsTime) {
  const Plan merged = one_process(lower(one_f_one_b(4, 3)));
  const auto result = simulate(merged);
  EXPECT_EQ(result.makespan, 4 * 3 * 3);
  EXPECT_THAT(result.bubble_share, ElementsAre(0));
}

TEST(Simulate, InterleavedStages) {
  // Stages 0 and 2 on rank 0, 1 and 3 on rank 1.
  const Plan plan = parse_plan(
      "0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1\n"
      "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 3RECV_F0 3F0 3RECV_F1 3F1\n");
  EXPECT_EQ(simulate(plan).makespan, 5);
  EXPECT_EQ(simulate(one_process(plan)).makespan, 8);
}

TEST(Simulate, ADeadlockListsWhoWaitsForWhat) {
  const Plan plan = parse_plan(
      "0F0 0SEND_F0 0RECV_B0 0B0 0F1 0SEND_F1 0RECV_B1 0B1\n"
      "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1\n");
  EXPECT_NO_THROW(validate(plan, Passes::forward_backward));
  try {
    simulate(plan);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("deadlock"), HasSubstr("rank 0 waits at position 2 for 0RECV_B0"),
                                    HasSubstr("rank 1 waits at position 2 for 1RECV_F1")));
  }
  EXPECT_THROW(one_process(plan), InputError);
}

TEST(Simulate, ACostModelThatDoesNotFitIsRefused) {
  const Plan plan = lower(gpipe(3, 2));
  EXPECT_THROW(simulate(plan, kUnequal), InputError);
  const auto good = CostModel::uniform(3, 1, 1, {1, 1, 1});
  EXPECT_NO_THROW(simulate(plan, good));
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {-1.0, kNan, std::numeric_limits<double>::infinity()}) {
    const auto refuses = [&](const auto& change) {
      CostModel costs = good;
      change(costs);
      EXPECT_THROW(simulate(plan, costs), InputError) << bad;
    };
    refuses([&](CostModel& costs) { costs.forward[0] = bad; });
    refuses([&](CostModel& costs) { costs.backward[2] = bad; });
    refuses([&](CostModel& costs) { costs.gradient[1].bytes = bad; });
    refuses([&](CostModel& costs) { costs.activation[0].encode_seconds = bad; });
    refuses([&](CostModel& costs) { costs.activation[1].decode_seconds = bad; });
    refuses([&](CostModel& costs) { costs.link.latency_seconds = bad; });
  }
  CostModel costs_with_rate = good;
  for (const double bad : {-1.0, 0.0, kNan}) {
    costs_with_rate.link.bytes_per_second = bad;
    EXPECT_THROW(simulate(plan, costs_with_rate), InputError) << bad;
  }
  CostModel own_links = good;
  own_links.boundary_links.resize(1);
  EXPECT_THROW(simulate(plan, own_links), InputError) << "there are two boundaries";
  own_links.boundary_links.resize(2);
  EXPECT_NO_THROW(simulate(plan, own_links));
  own_links.boundary_links[1].gradients.bytes_per_second = 0;
  EXPECT_THROW(simulate(plan, own_links), InputError);
}

TEST(Simulate, EachWayOfABoundaryMayHaveALinkOfItsOwn) {
  CostModel costs = CostModel::uniform(3, 1, 2, {.bytes = 8});
  costs.link = {.bytes_per_second = 1, .latency_seconds = 100};  // does not count
  costs.boundary_links = {{.activations = {.bytes_per_second = 8}, .gradients = {.bytes_per_second = 4}},
                          {.activations = {.bytes_per_second = 2, .latency_seconds = 10},
                           .gradients = {.bytes_per_second = 1, .latency_seconds = 20}}};
  const auto result = simulate(lower(gpipe(3, 1)), costs);
  // Forward, 8 bytes at 8/s, forward, 8 at 2/s and 10 s, forward and backward, 8 at 1/s and 20 s, backward,
  // 8 at 4/s, backward.
  EXPECT_DOUBLE_EQ(result.makespan, 1 + 1 + 1 + 4 + 10 + 1 + 2 + 8 + 20 + 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(result.shares.wire, 1 + 4 + 8 + 2);
  EXPECT_DOUBLE_EQ(result.shares.latency, 30);
}

TEST(Simulate, AFreePlanHasNoBubble) {
  const auto result = simulate(lower(gpipe(2, 2)), CostModel::uniform(2, 0, 0));
  EXPECT_EQ(result.makespan, 0);
  EXPECT_THAT(result.bubble_share, ElementsAre(0, 0));
}

TEST(Simulate, HundredsOfStagesAndMicroBatchesAreQuick) {
  const auto begin = std::chrono::steady_clock::now();
  const Plan plan = lower(one_f_one_b(300, 300));
  auto costs = CostModel::uniform(300, 1, 2, {.bytes = 1, .encode_seconds = 0.1, .decode_seconds = 0.1});
  costs.link = {.bytes_per_second = 4, .latency_seconds = 0.5};
  const auto result = simulate(plan, costs);
  EXPECT_EQ(result.steps.size(), size_t{300} * 300 * 2 + size_t{299} * 300 * 4);
  EXPECT_EQ(parse_plan(to_text(plan)), plan);
  // Takes 0.3 s; a quadratic scan would take minutes, also on a machine that is busy.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace strait
