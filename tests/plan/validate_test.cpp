#include "strait/pipeline/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "strait/base/error.h"
#include "strait/pipeline/schedules.h"
#include "strait/pipeline/simulate.h"

namespace strait {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// What validate() or, when that accepts the plan, simulate() objects to; empty when neither does.
std::string objection(const Plan& plan, Passes passes) {
  try {
    validate(plan, passes);
    simulate(plan);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

struct Case {
  Plan plan;
  Passes passes;
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto& [stages, micro_batches] : {std::pair{1, 1}, {1, 3}, {2, 1}, {2, 3}, {3, 2}, {4, 4}}) {
    const Plan gpipe_plan = lower(gpipe(stages, micro_batches));
    const Plan alternating = lower(one_f_one_b(stages, micro_batches));
    cases.push_back({gpipe_plan, Passes::forward_backward});
    cases.push_back({alternating, Passes::forward_backward});
    cases.push_back({one_process(alternating), Passes::forward_backward});
    cases.push_back({lower(forward_only(stages, micro_batches)), Passes::forward_only});
  }
  cases.push_back({lower(interleaved({4, 3, 2})), Passes::forward_backward});
  return cases;
}

/// Calls visit(case, rank, position) for every action of every case.
template <class Visit>
void for_each_action(Visit visit) {
  for (const Case& one : cases()) {
    for (size_t rank = 0; rank < one.plan.ranks.size(); ++rank) {
      for (size_t i = 0; i < one.plan.ranks[rank].size(); ++i) visit(one, rank, static_cast<std::ptrdiff_t>(i));
    }
  }
}

/// Another way to decide whether a plan with the right actions works: the orders of the ranks and what has
/// to come before what must not form a circle. `good` is a valid plan with the same actions.
class Oracle {
 public:
  explicit Oracle(const Plan& good) {
    for (const auto& actions : good.ranks) {
      for (const Action& action : actions) add_dependencies(good, action);
    }
  }

  bool accepts(const Plan& plan) const {
    std::vector<size_t> position(plan.ranks.size());
    std::map<std::tuple<Op, int, int>, bool> done;
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
        while (position[rank] < plan.ranks[rank].size() && ready(plan.ranks[rank][position[rank]], done)) {
          done[key(plan.ranks[rank][position[rank]++])] = true;
          progress = true;
        }
      }
    }
    for (size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      if (position[rank] < plan.ranks[rank].size()) return false;
    }
    return true;
  }

 private:
  static std::tuple<Op, int, int> key(const Action& action) {
    return {action.op, action.stage, action.micro_batch};
  }

  void add_dependencies(const Plan& plan, const Action& action) {
    const auto& [op, stage, micro_batch] = action;
    auto& before = before_[key(action)];
    if (micro_batch > 0) before.push_back({op, stage, micro_batch - 1});
    if (op == Op::forward && stage > 0) before.push_back({Op::recv_activation, stage, micro_batch});
    if (op == Op::send_activation) before.push_back({Op::forward, stage, micro_batch});
    if (op == Op::recv_activation) before.push_back({Op::send_activation, stage - 1, micro_batch});
    if (op == Op::backward) before.push_back({Op::forward, stage, micro_batch});
    if (op == Op::backward && stage + 1 < plan.stages) {
      before.push_back({Op::recv_gradient, stage, micro_batch});
    }
    if (op == Op::send_gradient) before.push_back({Op::backward, stage, micro_batch});
    if (op == Op::recv_gradient) before.push_back({Op::send_gradient, stage + 1, micro_batch});
  }

  bool ready(const Action& action, const std::map<std::tuple<Op, int, int>, bool>& done) const {
    for (const Action& before : before_.at(key(action))) {
      if (!done.contains(key(before))) return false;
    }
    return true;
  }

  std::map<std::tuple<Op, int, int>, std::vector<Action>> before_;
};

TEST(Validate, ADroppedActionIsNoticed) {
  for_each_action([](const Case& one, size_t rank, std::ptrdiff_t i) {
    Plan plan = one.plan;
    plan.ranks[rank].erase(plan.ranks[rank].begin() + i);
    EXPECT_NE(objection(plan, one.passes), "") << "rank " << rank << " position " << i << "\n"
                                               << to_text(one.plan);
  });
}

TEST(Validate, ADuplicatedActionIsNoticedWhereverItStands) {
  for_each_action([](const Case& one, size_t rank, std::ptrdiff_t i) {
    for (size_t at = 0; at <= one.plan.ranks[rank].size(); ++at) {
      Plan plan = one.plan;
      auto& actions = plan.ranks[rank];
      const Action copy = actions[static_cast<size_t>(i)];
      actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(at), copy);
      EXPECT_NE(objection(plan, one.passes), "") << to_text(plan);
    }
  });
}

TEST(Validate, AChangedActionIsNoticed) {
  for_each_action([](const Case& one, size_t rank, std::ptrdiff_t i) {
    for (int op = 0; op < kOpCount; ++op) {
      for (int stage = -1; stage <= one.plan.stages; ++stage) {
        for (int micro_batch = -1; micro_batch <= one.plan.micro_batches; ++micro_batch) {
          Plan plan = one.plan;
          Action& action = plan.ranks[rank][static_cast<size_t>(i)];
          const Action changed{static_cast<Op>(op), stage, micro_batch};
          if (std::exchange(action, changed) == changed) continue;
          ASSERT_NE(objection(plan, one.passes), "") << to_text(plan);
        }
      }
    }
  });
}

TEST(Validate, ASwapIsNoticedExactlyWhereOrderMatters) {
  size_t harmless = 0;
  size_t harmful = 0;
  for_each_action([&](const Case& one, size_t rank, std::ptrdiff_t i) {
    const Oracle oracle(one.plan);
    for (auto j = static_cast<size_t>(i) + 1; j < one.plan.ranks[rank].size(); ++j) {
      Plan plan = one.plan;
      std::swap(plan.ranks[rank][static_cast<size_t>(i)], plan.ranks[rank][j]);
      const bool works = oracle.accepts(plan);
      ASSERT_EQ(objection(plan, one.passes).empty(), works) << to_text(plan);
      ++(works ? harmless : harmful);
    }
  });
  EXPECT_GT(harmless, 100U);
  EXPECT_GT(harmful, 1000U);
}

TEST(Validate, ShufflesAgreeWithTheOracle) {
  std::mt19937 random(1);
  size_t works = 0;
  for (int round = 0; round < 3000; ++round) {
    const Plan good = lower(gpipe(2, 2));
    Plan plan = good;
    for (int swaps = 0; swaps < 3; ++swaps) {
      auto& actions = plan.ranks[random() % plan.ranks.size()];
      const size_t i = random() % (actions.size() - 1);
      std::swap(actions[i], actions[i + 1]);
    }
    const bool expected = Oracle(good).accepts(plan);
    ASSERT_EQ(objection(plan, Passes::forward_backward).empty(), expected) << to_text(plan);
    works += expected ? 1 : 0;
  }
  EXPECT_GT(works, 100U);
}

TEST(Validate, MessagesNameRankPositionAndAction) {
  const auto objection_to = [](std::string_view text) {
    return objection(parse_plan(text), Passes::forward_backward);
  };
  EXPECT_THAT(objection_to("0F0 0F1 0B1 0B0"),
              AllOf(HasSubstr("rank 0, position 2, 0B1"), HasSubstr("0B0 has to come next")));
  EXPECT_THAT(objection_to("0F0 0SEND_F0 0RECV_B0 0B0\n1F0 1RECV_F0 1B0 1SEND_B0"),
              AllOf(HasSubstr("rank 1, position 0, 1F0"), HasSubstr("1RECV_F0 has to come first")));
  EXPECT_THAT(objection_to("0F0 0B0 0B0"),
              AllOf(HasSubstr("rank 0, position 2, 0B0"), HasSubstr("all of them")));
  EXPECT_THAT(objection_to("0F0 0SEND_F0 0RECV_B0 0B0\n1RECV_F0 1F0 1B0"),
              AllOf(HasSubstr("rank 1, position 3"), HasSubstr("1SEND_B0 is missing")));
  EXPECT_THAT(objection_to("0F0 0SEND_F0 0B0"), HasSubstr("rank 0, position 1, 0SEND_F0"));
}

TEST(Validate, PassesDecideWhetherBackwardsAreWanted) {
  const Plan evaluation = lower(forward_only(2, 2));
  const Plan training = lower(gpipe(2, 2));
  EXPECT_EQ(passes_of(evaluation), Passes::forward_only);
  EXPECT_EQ(passes_of(training), Passes::forward_backward);
  EXPECT_THROW(validate(evaluation, Passes::forward_backward), InputError);
  EXPECT_THROW(validate(training, Passes::forward_only), InputError);
}

TEST(Validate, AMisshapenPlanIsRefused) {
  const Plan good = lower(gpipe(2, 1));
  Plan plan = good;
  plan.rank_of_stage.pop_back();
  EXPECT_THROW(validate(plan, Passes::forward_backward), InputError);
  plan = good;
  plan.rank_of_stage[1] = 2;
  EXPECT_THROW(validate(plan, Passes::forward_backward), InputError);
  plan = good;
  std::swap(plan.ranks[0], plan.ranks[1]);
  EXPECT_THROW(validate(plan, Passes::forward_backward), InputError);
  EXPECT_THROW(validate(Plan{}, Passes::forward_backward), InputError);
}

}  // namespace
}  // namespace strait
