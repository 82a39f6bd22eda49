#include "strait/pipeline/schedules.h"

#include <algorithm>
#include <map>
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

/// One step of a rank's way through its stages: which of them, counted on this rank, and the micro-batch.
struct Turn {
  int chunk;
  int micro_batch;
};

/// The forwards of every rank: group by group, and within a group stage by stage. The last group is whole,
/// even where there are fewer micro-batches.
std::vector<Turn> forward_turns(int group, int chunks, int micro_batches) {
  std::vector<Turn> turns;
  for (int begin = 0; begin < micro_batches; begin += group) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int i = begin; i < begin + group; ++i) turns.push_back({chunk, i});
    }
  }
  return turns;
}

Plan gpipe_of(const ScheduleSize& size) { return gpipe(size.stages, size.micro_batches); }
Plan one_f_one_b_of(const ScheduleSize& size) { return one_f_one_b(size.stages, size.micro_batches); }

struct NamedSchedule {
  std::string_view name;
  Plan (*make)(const ScheduleSize& size);
  bool takes_several_stages = false;  ///< a rank
  WeightVersions versions = WeightVersions::one;
};

/// `pipedream`: Harlap et al. 2018. `xpipe`: Guan et al. 2019. Both run a stream of micro-batches as 1F1B does
/// a batch.
constexpr NamedSchedule kSchedules[] = {
    {.name = "gpipe", .make = gpipe_of},
    {.name = "1f1b", .make = one_f_one_b_of},
    {.name = "interleaved", .make = interleaved, .takes_several_stages = true},
    {.name = "pipedream", .make = one_f_one_b_of, .versions = WeightVersions::stashed},
    {.name = "xpipe", .make = one_f_one_b_of, .versions = WeightVersions::predicted}};

const NamedSchedule& schedule_named(std::string_view name) {
  for (const auto& schedule : kSchedules) {
    if (schedule.name == name) return schedule;
  }
  throw InputError("unknown schedule \"{}\"{}; expected one of: {}", name, suggestion(name, schedule_names()),
                   list_of(schedule_names()));
}

void check_divides(int stages_per_rank, int stages) {
  if (stages_per_rank >= 1 && stages % stages_per_rank == 0) return;
  throw InputError("expected a number that divides the {} stages, found {}", stages, stages_per_rank);
}

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

Plan interleaved(const ScheduleSize& size) {
  const int stages = size.stages;
  const int micro_batches = size.micro_batches;
  const int chunks = size.stages_per_rank;
  check_divides(chunks, stages);
  if (chunks == 1) return one_f_one_b(stages, micro_batches);
  Plan plan = empty_plan(stages, micro_batches);
  const int ranks = stages / chunks;
  for (int stage = 0; stage < stages; ++stage) plan.rank_of_stage[static_cast<size_t>(stage)] = stage % ranks;
  plan.ranks.resize(static_cast<size_t>(ranks));
  const auto turns = forward_turns(ranks, chunks, micro_batches);
  for (int rank = 0; rank < ranks; ++rank) {
    auto& actions = plan.ranks[static_cast<size_t>(rank)];
    const auto add = [&](Op op, int chunk, int micro_batch) {
      if (micro_batch < micro_batches) actions.push_back({op, chunk * ranks + rank, micro_batch});
    };
    const auto warm_up =
        std::min(turns.size(), static_cast<size_t>((ranks - rank - 1) * 2 + (chunks - 1) * ranks));
    for (size_t i = 0; i < warm_up; ++i) add(Op::forward, turns[i].chunk, turns[i].micro_batch);
    for (size_t i = 0; i < turns.size(); ++i) {
      if (warm_up + i < turns.size()) {
        add(Op::forward, turns[warm_up + i].chunk, turns[warm_up + i].micro_batch);
      }
      add(Op::backward, chunks - 1 - turns[i].chunk, turns[i].micro_batch);
    }
  }
  return plan;
}

Plan forward_only(int stages, int micro_batches, int stages_per_rank) {
  Plan plan = empty_plan(stages, micro_batches);
  const int ranks = stages / stages_per_rank;
  plan.ranks.resize(static_cast<size_t>(ranks));
  for (int stage = 0; stage < stages; ++stage) {
    const int rank = plan.rank_of_stage[static_cast<size_t>(stage)] = stage % ranks;
    auto& actions = plan.ranks[static_cast<size_t>(rank)];
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

void check_stages_per_rank(std::string_view name, const ScheduleSize& size) {
  if (size.stages_per_rank != 1 && !schedule_named(name).takes_several_stages) {
    throw InputError(
        "expected 1 with schedule \"{}\", which has one stage per rank, found {}; several are for "
        "schedule \"interleaved\"",
        name, size.stages_per_rank);
  }
  check_divides(size.stages_per_rank, size.stages);
}

WeightVersions weight_versions(std::string_view name) { return schedule_named(name).versions; }

bool Schedule::is_known() const {
  return make_ != nullptr || std::ranges::find(schedule_names(), name_) != schedule_names().end();
}

WeightVersions Schedule::weight_versions() const {
  return make_ ? WeightVersions::one : strait::weight_versions(name_);
}

Plan make_schedule(std::string_view name, const ScheduleSize& size) {
  const NamedSchedule& schedule = schedule_named(name);
  check_stages_per_rank(name, size);
  return schedule.make(size);
}

Plan Schedule::plan(const ScheduleSize& size) const {
  if (!make_) return make_schedule(name_, size);
  Plan plan = make_(size);
  const auto ranks = static_cast<size_t>(size.stages / size.stages_per_rank);
  const Plan expected = forward_only(size.stages, size.micro_batches, size.stages_per_rank);
  if (plan.stages == size.stages && plan.micro_batches == size.micro_batches && plan.ranks.size() == ranks &&
      plan.rank_of_stage == expected.rank_of_stage) {
    return plan;
  }
  throw InputError(
      "schedule \"{}\": the plan has {} stages, {} micro-batches and {} ranks, expected {}, {} and {} with "
      "stage s on rank s mod {}",
      name_, plan.stages, plan.micro_batches, plan.ranks.size(), size.stages, size.micro_batches, ranks, ranks);
}

void check_process_count(int stages, const PipelineOptions& options, int processes) {
  const int ranks = stages / options.stages_per_rank;
  const int replicas = options.replicas;
  if (processes == replicas || processes == ranks * replicas) return;
  throw InputError(
      "WORLD_SIZE (launch -n): expected {} processes, one for {} of the {} stages that model.cuts makes{}, or "
      "{}; found {}",
      ranks * replicas,
      options.stages_per_rank == 1 ? "each" : fmt::format("every {}", options.stages_per_rank), stages,
      replicas == 1 ? "" : fmt::format(" in each of {} pipeline.replicas", replicas), replicas, processes);
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

std::vector<Action> window(const std::vector<Action>& actions, int begin, int end) {
  std::map<int, int> newest;  // of every stage, the micro-batch that it has taken in last
  std::vector<Action> found;
  for (const Action& action : actions) {
    const bool takes_in = action.op == Op::recv_activation || (action.op == Op::forward && action.stage == 0);
    if (takes_in) newest[action.stage] = action.micro_batch;
    const int at = newest.at(action.stage);
    if (begin <= at && at < end) found.push_back(action);
  }
  return found;
}

Plan one_process(const Plan& plan) {
  Plan merged{plan.stages, plan.micro_batches, std::vector<int>(plan.rank_of_stage.size(), 0), {{}}};
  for (const Step& step : simulate(plan).steps) merged.ranks[0].push_back(step.action);
  return merged;
}

}  // namespace strait
