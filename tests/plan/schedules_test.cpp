#include "strait/pipeline/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strait/base/error.h"
#include "strait/pipeline/simulate.h"
#include "strait/pipeline/validate.h"
#include "tests/support/errors.h"
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
  for (const auto& [stages, micro_batches] : {Size{4, 4}, {4, 3}, {8, 8}}) {
    EXPECT_EQ(to_text(lower(interleaved({stages, micro_batches, 2}))),
              test::read_file(fmt::format("{}interleaved_{}x{}_2_a_rank.txt", folder, stages, micro_batches)));
  }
}

TEST(Schedules, AllAreValidAndFreeOfDeadlock) {
  for (const auto& [stages, micro_batches] : small_sizes()) {
    for (const auto& name : schedule_names()) {
      const Plan plan = lower(make_schedule(name, {stages, micro_batches}));
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
      const Plan plan = lower(make_schedule(name, {stages, micro_batches}));
      const auto result = simulate(plan, CostModel::uniform(stages, 1, 2));
      EXPECT_DOUBLE_EQ(result.makespan, 3 * (micro_batches + stages - 1.0)) << name;
      EXPECT_THAT(result.bubble_share, Each(::testing::DoubleNear(bubble, 1e-12))) << name;
    }
  }
}

std::vector<ScheduleSize> interleaved_sizes() {
  std::vector<ScheduleSize> sizes;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int chunks = 1; chunks <= 4; ++chunks) {
      for (int micro_batches = 1; micro_batches <= 16; ++micro_batches) {
        sizes.push_back({ranks * chunks, micro_batches, chunks});
      }
    }
  }
  return sizes;
}

// The example of docs/adding_a_schedule.md.
Plan eager_1f1b(const ScheduleSize& size) {
  Plan plan = forward_only(size.stages, size.micro_batches);
  for (int rank = 0; rank < size.stages; ++rank) {
    auto& actions = plan.ranks[static_cast<size_t>(rank)];
    const int ahead = std::min(2 * (size.stages - rank) - 1, size.micro_batches);
    actions.resize(static_cast<size_t>(ahead));
    for (int i = 0; i < size.micro_batches; ++i) {
      actions.push_back({Op::backward, rank, i});
      if (ahead + i < size.micro_batches) actions.push_back({Op::forward, rank, ahead + i});
    }
  }
  return plan;
}

/// The example as a file has it.
std::string example_in(const std::string& file) {
  const std::string text = test::read_file(file);
  const size_t begin = text.find("Plan eager_1f1b(");
  return text.substr(begin, text.find("\n}\n", begin) - begin);
}

TEST(Schedules, TheExampleOfTheDocumentationCanRunAndHidesLatency) {
  EXPECT_EQ(example_in("docs/adding_a_schedule.md"), example_in("tests/plan/schedules_test.cpp"));
  const Schedule own("eager", eager_1f1b);
  for (const auto& [stages, micro_batches] : small_sizes()) {
    const Plan plan = lower(own.plan({stages, micro_batches}));
    EXPECT_NO_THROW(validate(plan, Passes::forward_backward));
    EXPECT_NO_THROW(simulate(plan));
  }
  CostModel costs = CostModel::uniform(4, 1, 2);
  costs.link.latency_seconds = 1;
  EXPECT_LT(simulate(lower(own.plan({4, 8})), costs).makespan,
            simulate(lower(one_f_one_b(4, 8)), costs).makespan);
  EXPECT_THAT(simulate(lower(own.plan({4, 8}))).peak_live, ElementsAre(7, 5, 3, 1));
}

TEST(Interleaved, IsValidAndFreeOfDeadlockForAnyNumberOfMicroBatches) {
  for (const auto& size : interleaved_sizes()) {
    const Plan plan = lower(interleaved(size));
    const int ranks = size.stages / size.stages_per_rank;
    ASSERT_EQ(plan.ranks.size(), static_cast<size_t>(ranks));
    for (int stage = 0; stage < size.stages; ++stage) {
      EXPECT_EQ(plan.rank_of_stage[static_cast<size_t>(stage)], stage % ranks);
    }
    EXPECT_NO_THROW(validate(plan, Passes::forward_backward));
    EXPECT_NO_THROW(simulate(plan)) << size.stages << " " << size.micro_batches << " " << size.stages_per_rank;
  }
}

TEST(Interleaved, DividesTheBubbleByTheStagesOfARank) {
  for (const auto& size : interleaved_sizes()) {
    const auto& [stages, micro_batches, chunks] = size;
    const int ranks = stages / chunks;
    const auto whole =
        simulate(lower(one_f_one_b(ranks, micro_batches)), CostModel::uniform(ranks, chunks, 2 * chunks));
    const auto parts = simulate(lower(interleaved(size)));
    EXPECT_LE(parts.makespan, whole.makespan) << stages << " " << micro_batches << " " << chunks;
    if (micro_batches % ranks != 0) continue;
    EXPECT_DOUBLE_EQ(parts.makespan, 3.0 * chunks * micro_batches + 3.0 * (ranks - 1));
    EXPECT_NEAR(parts.shares.bubble * chunks, whole.shares.bubble, 1e-9);
  }
}

TEST(Interleaved, OneStageARankIs1F1B) { EXPECT_EQ(interleaved({4, 6, 1}), one_f_one_b(4, 6)); }

TEST(Interleaved, OneProcessKeepsTheOrderOfEveryStage) {
  const Plan plan = lower(interleaved({6, 5, 2}));
  const Plan merged = one_process(plan);
  EXPECT_NO_THROW(validate(merged, Passes::forward_backward));
  for (int stage = 0; stage < 6; ++stage) EXPECT_EQ(of_stage(merged, stage), of_stage(plan, stage));
}

/// What the ranks do from taking in one micro-batch to taking in another.
Plan window_of(const Plan& plan, int begin, int end) {
  Plan part = plan;
  for (auto& actions : part.ranks) actions = window(actions, begin, end);
  return part;
}

/// A stream in batches of two: what stages do with the third of them, and what is left after it.
TEST(Window, EqualsTheGoldenFiles) {
  const std::string folder = "tests/golden/schedules/";
  for (const char* name : {"pipedream", "xpipe"}) {
    const Plan stream = lower(make_schedule(name, {4, 7}));
    EXPECT_EQ(to_text(window_of(stream, 4, 6)),
              test::read_file(fmt::format("{}{}_4x2_third.txt", folder, name)));
    EXPECT_EQ(to_text(window_of(stream, 6, 7)), test::read_file(fmt::format("{}{}_4x2_end.txt", folder, name)));
  }
}

TEST(Window, PartsOfAStreamAreTheWholeInItsOrder) {
  for (const auto& [stages, each] : small_sizes()) {
    const int batches = 4;
    const Plan stream = lower(make_schedule("pipedream", {stages, batches * each}));
    for (const Plan& plan : {stream, one_process(stream)}) {
      for (int stage = 0; stage < stages; ++stage) {
        std::vector<Action> joined;
        for (int begin = 0; begin < batches * each; begin += each) {
          const auto part = of_stage(window_of(plan, begin, begin + each), stage);
          EXPECT_EQ(std::ranges::count(part, Op::forward, &Action::op), each);
          joined.insert(joined.end(), part.begin(), part.end());
        }
        EXPECT_EQ(joined, of_stage(plan, stage)) << stages << " " << each;
      }
    }
  }
}

/// Whatever a rank receives in a part has been sent in it or before.
TEST(Window, NothingIsReceivedBeforeThePartInWhichItIsSent) {
  for (const auto& [stages, each] : small_sizes()) {
    const Plan stream = lower(make_schedule("pipedream", {stages, 5 * each}));
    std::vector<Action> sent;
    for (int begin = 0; begin < 5 * each; begin += each) {
      const Plan part = window_of(stream, begin, begin + each);
      for (const auto& actions : part.ranks)
        std::ranges::copy_if(actions, std::back_inserter(sent), is_send, &Action::op);
      for (const auto& actions : part.ranks) {
        for (const Action& action : actions) {
          if (!is_receive(action.op)) continue;
          const bool forward = action.op == Op::recv_activation;
          const Action send = {forward ? Op::send_activation : Op::send_gradient,
                               action.stage + (forward ? -1 : 1), action.micro_batch};
          EXPECT_NE(std::ranges::find(sent, send), sent.end()) << to_text(action);
        }
      }
    }
  }
}

std::string complaint(std::string_view name, const ScheduleSize& size) {
  return test::error_of<InputError>([&] { make_schedule(name, size); });
}

TEST(Interleaved, SizesThatDoNotFitAreRefused) {
  EXPECT_THAT(complaint("interleaved", {5, 2, 2}),
              HasSubstr("expected a number that divides the 5 stages, found 2"));
  EXPECT_THAT(complaint("interleaved", {4, 2, 0}), HasSubstr("found 0"));
  EXPECT_THAT(complaint("gpipe", {4, 2, 2}), HasSubstr("expected 1 with schedule \"gpipe\""));
  EXPECT_THAT(complaint("1f1b", {4, 2, 2}), HasSubstr("several are for schedule \"interleaved\""));
}

TEST(Schedules, WrongNamesAndSizesAreRefused) {
  EXPECT_THAT(schedule_names(), ElementsAre("gpipe", "1f1b", "interleaved", "pipedream", "xpipe"));
  EXPECT_THROW(gpipe(0, 1), InputError);
  EXPECT_THROW(one_f_one_b(1, 0), InputError);
  EXPECT_THROW(forward_only(-1, 1), InputError);
  EXPECT_THROW(gpipe(kMaxStages + 1, 1), InputError);
  EXPECT_THROW(lower(lower(gpipe(2, 1))), InternalError);
  EXPECT_THAT(complaint("gpip", {2, 2}), HasSubstr("did you mean \"gpipe\"?"));
}

}  // namespace
}  // namespace strait
