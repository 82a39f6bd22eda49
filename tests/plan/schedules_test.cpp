#include "strait/pipeline/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strait/base/error.h"
#include "strait/pipeline/simulate.h"
#include "strait/pipeline/validate.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Size {
  int stages;
  int micro_batches;
};

std::vector<Size> small_sizes() {
  std::vector<Size> sizes;
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micro_batches = 1; micro_batches <= 8; ++micro_batches) sizes.push_back({stages, micro_batches});
  }
  return sizes;
}

/// The actions of one stage, in order.
std::vector<Action> of_stage(const Plan& plan, int stage) {
  std::vector<Action> actions;
  for (const Action& action : plan.ranks[static_cast<size_t>(plan.rank_of_stage[static_cast<size_t>(stage)])]) {
    if (action.stage == stage) actions.push_back(action);
  }
  return actions;
}

TEST(Schedules, EqualTheGoldenFiles) {
  const std::string folder = "tests/golden/schedules/";
  for (const auto& [stages, micro_batches] : {Size{4, 1}, {4, 4}, {2, 3}}) {
    const auto golden = [&](const std::string& name) {
      return test::read_file(fmt::format("{}{}_{}x{}.txt", folder, name, stages, micro_batches));
    };
    EXPECT_EQ(to_text(lower(gpipe(stages, micro_batches))), golden("gpipe"));
    EXPECT_EQ(to_text(lower(one_f_one_b(stages, micro_batches))), golden("1f1b"));
    EXPECT_EQ(to_text(lower(forward_only(stages, micro_batches))), golden("forward_only"));
  }
  EXPECT_EQ(to_text(one_process(lower(one_f_one_b(2, 3)))),
            test::read_file(folder + "1f1b_2x3_one_process.txt"));
}

TEST(Schedules, AllAreValidAndFreeOfDeadlock) {
  for (const auto& [stages, micro_batches] : small_sizes()) {
    for (const auto& name : schedule_names()) {
      const Plan plan = lower(make_schedule(name, stages, micro_batches));
      EXPECT_NO_THROW(validate(plan, Passes::forward_backward));
      EXPECT_NO_THROW(simulate(plan));
    }
    const Plan evaluation = lower(forward_only(stages, micro_batches));
    EXPECT_NO_THROW(validate(evaluation, Passes::forward_only));
    EXPECT_THAT(simulate(evaluation).peak_live, Each(1));
  }
}

TEST(Schedules, OneProcessKeepsTheOrderOfEveryStage) {
  for (const auto& [stages, micro_batches] : small_sizes()) {
    for (const Plan& plan : {lower(gpipe(stages, micro_batches)), lower(one_f_one_b(stages, micro_batches))}) {
      const Plan merged = one_process(plan);
      ASSERT_EQ(merged.ranks.size(), 1U);
      EXPECT_NO_THROW(validate(merged, Passes::forward_backward));
      EXPECT_EQ(simulate(merged).peak_live, simulate(plan).peak_live);
      for (int stage = 0; stage < stages; ++stage) EXPECT_EQ(of_stage(merged, stage), of_stage(plan, stage));
      EXPECT_EQ(one_process(merged), merged);
    }
  }
}

TEST(Schedules, PeakLiveMicroBatchesAsInTheTextbook) {
  for (const auto& [stages, micro_batches] : small_sizes()) {
    EXPECT_THAT(simulate(lower(gpipe(stages, micro_batches))).peak_live, Each(micro_batches));
    const auto peak = simulate(lower(one_f_one_b(stages, micro_batches))).peak_live;
    for (int stage = 0; stage < stages; ++stage) {
      EXPECT_EQ(peak[static_cast<size_t>(stage)], std::min(micro_batches, stages - stage));
    }
  }
}

TEST(Schedules, BubbleAsInTheTextbook) {
  for (const auto& [stages, micro_batches] : small_sizes()) {
    const double bubble = (stages - 1.0) / (micro_batches + stages - 1.0);
    for (const auto& name : schedule_names()) {
      const Plan plan = lower(make_schedule(name, stages, micro_batches));
      const auto result = simulate(plan, CostModel::uniform(stages, 1, 2, 0));
      EXPECT_DOUBLE_EQ(result.makespan, 3 * (micro_batches + stages - 1.0)) << name;
      EXPECT_THAT(result.bubble_share, Each(::testing::DoubleNear(bubble, 1e-12))) << name;
    }
  }
}

TEST(Schedules, WrongNamesAndSizesAreRefused) {
  EXPECT_THAT(schedule_names(), ElementsAre("gpipe", "1f1b"));
  EXPECT_THROW(gpipe(0, 1), InputError);
  EXPECT_THROW(one_f_one_b(1, 0), InputError);
  EXPECT_THROW(forward_only(-1, 1), InputError);
  EXPECT_THROW(gpipe(kMaxStages + 1, 1), InputError);
  EXPECT_THROW(lower(lower(gpipe(2, 1))), InternalError);
  try {
    make_schedule("gpip", 2, 2);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"gpipe\"?"));
  }
}

}  // namespace
}  // namespace strait
