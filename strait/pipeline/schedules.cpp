#include "strait/pipeline/schedules.h"

#include <algorithm>
#include <numeric>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/pipeline/simulate.h"

namespace strait {
namespace {

/// A plan with stage `s` on rank `s` and nothing to do.
Plan empty_plan(int stages, int micro_batches) {
  if (stages < 1 || stages > kMaxStages || micro_batches < 1 || micro_batches > kMaxMicroBatches) {
    throw InputError("a schedule needs 1 to {} stages and 1 to {} micro-batches, not {} and {}", kMaxStages,
                     kMaxMicroBatches, stages, micro_batches);
  }
  Plan plan{stages, micro_batches, std::vector<int>(static_cast<size_t>(stages)), {}};
  std::iota(plan.rank_of_stage.begin(), plan.rank_of_stage.end(), 0);
  plan.ranks.resize(static_cast<size_t>(stages));
  return plan;
}

struct NamedSchedule {
  std::string_view name;
  Plan (*make)(int stages, int micro_batches);
};

constexpr NamedSchedule kSchedules[] = {{"gpipe", gpipe}, {"1f1b", one_f_one_b}};

}  // namespace

Plan gpipe(int stages, int micro_batches) {
  Plan plan = forward_only(stages, micro_batches);
  for (int stage = 0; stage < stages; ++stage) {
    auto& actions = plan.ranks[static_cast<size_t>(stage)];
    for (int i = 0; i < micro_batches; ++i) actions.push_back({Op::backward, stage, i});
  }
  return plan;
}

Plan one_f_one_b(int stages, int micro_batches) {
  Plan plan = empty_plan(stages, micro_batches);
  for (int stage = 0; stage < stages; ++stage) {
    auto& actions = plan.ranks[static_cast<size_t>(stage)];
    const int warm_up = std::min(stages - stage, micro_batches);
    for (int i = 0; i < warm_up; ++i) actions.push_back({Op::forward, stage, i});
    for (int i = 0; i < micro_batches; ++i) {
      actions.push_back({Op::backward, stage, i});
      if (warm_up + i < micro_batches) actions.push_back({Op::forward, stage, warm_up + i});
    }
  }
  return plan;
}

Plan forward_only(int stages, int micro_batches) {
  Plan plan = empty_plan(stages, micro_batches);
  for (int stage = 0; stage < stages; ++stage) {
    auto& actions = plan.ranks[static_cast<size_t>(stage)];
    for (int i = 0; i < micro_batches; ++i) actions.push_back({Op::forward, stage, i});
  }
  return plan;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& schedule : kSchedules) names.emplace_back(schedule.name);
    return names;
  }();
  return kNames;
}

Plan make_schedule(std::string_view name, int stages, int micro_batches) {
  for (const auto& schedule : kSchedules) {
    if (schedule.name == name) return schedule.make(stages, micro_batches);
  }
  throw InputError("unknown schedule \"{}\"{}; expected one of: {}", name, suggestion(name, schedule_names()),
                   list_of(schedule_names()));
}

void check_stage_count(int stages, int processes) {
  if (processes == 1 || processes == stages) return;
  throw InputError("WORLD_SIZE: expected {} processes, one for each stage that model.cuts makes, or 1; found {}",
                   stages, processes);
}

Plan lower(const Plan& plan) {
  Plan lowered = plan;
  for (auto& actions : lowered.ranks) {
    std::vector<Action> with_messages;
    for (const Action& action : actions) {
      const auto& [op, stage, micro_batch] = action;
      STRAIT_CHECK(op == Op::forward || op == Op::backward, "{} is in a plan to be lowered", to_text(action));
      const bool first = stage == 0;
      const bool last = stage == plan.stages - 1;
      if (op == Op::forward) {
        if (!first) with_messages.push_back({Op::recv_activation, stage, micro_batch});
        with_messages.push_back(action);
        if (!last) with_messages.push_back({Op::send_activation, stage, micro_batch});
      } else {
        if (!last) with_messages.push_back({Op::recv_gradient, stage, micro_batch});
        with_messages.push_back(action);
        if (!first) with_messages.push_back({Op::send_gradient, stage, micro_batch});
      }
    }
    actions = std::move(with_messages);
  }
  return lowered;
}

Plan one_process(const Plan& plan) {
  Plan merged{plan.stages, plan.micro_batches, std::vector<int>(plan.rank_of_stage.size(), 0), {{}}};
  for (const Step& step : simulate(plan).steps) merged.ranks[0].push_back(step.action);
  return merged;
}

}  // namespace strait
