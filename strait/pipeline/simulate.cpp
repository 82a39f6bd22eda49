#include "strait/pipeline/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "strait/base/error.h"
#include "strait/pipeline/validate.h"

namespace strait {
namespace {

constexpr int kNobody = -1;

/// One direction of one boundary. A validated plan sends micro-batch `i` as message `i`.
struct Link {
  std::vector<double> arrivals;  ///< of the messages sent so far
  double free_at = 0;
  int waiting_rank = kNobody;
};

struct Rank {
  size_t position = 0;  ///< of the next action
  double clock = 0;     ///< end of the last action
  double busy = 0;      ///< seconds of computation
};

class Simulator {
 public:
  Simulator(const Plan& plan, const CostModel& costs)
      : plan_(plan),
        costs_(costs),
        keeps_(passes_of(plan) == Passes::forward_backward),
        ranks_(plan.ranks.size()),
        links_(2 * static_cast<size_t>(plan.stages)),
        live_(static_cast<size_t>(plan.stages)) {
    result_.peak_live.resize(live_.size());
  }

  Simulation run() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) await(static_cast<int>(rank));
    while (!ready_.empty()) {
      const auto [time, rank] = ready_.top();
      ready_.pop();
      perform(rank, time);
      await(rank);
    }
    check_finished();
    for (const Rank& rank : ranks_) result_.makespan = std::max(result_.makespan, rank.clock);
    for (const Rank& rank : ranks_) {
      result_.bubble_share.push_back(result_.makespan > 0 ? 1 - rank.busy / result_.makespan : 0);
    }
    return std::move(result_);
  }

 private:
  Link& link_of(const Action& action) {
    const auto boundary = static_cast<size_t>(boundary_of(action));
    return links_[2 * boundary + static_cast<size_t>(direction_of(action.op))];
  }

  /// Puts the rank's next action into the queue, or the rank on the waiting list of a message.
  void await(int index) {
    const Rank& rank = ranks_[static_cast<size_t>(index)];
    const auto& actions = plan_.ranks[static_cast<size_t>(index)];
    if (rank.position == actions.size()) return;
    const Action& action = actions[rank.position];
    if (!is_receive(action.op)) {
      ready_.emplace(rank.clock, index);
      return;
    }
    Link& link = link_of(action);
    const auto message = static_cast<size_t>(action.micro_batch);
    if (message < link.arrivals.size()) {
      ready_.emplace(std::max(rank.clock, link.arrivals[message]), index);
    } else {
      link.waiting_rank = index;
    }
  }

  void perform(int index, double time) {
    Rank& rank = ranks_[static_cast<size_t>(index)];
    const Action& action = plan_.ranks[static_cast<size_t>(index)][rank.position++];
    const auto stage = static_cast<size_t>(action.stage);
    rank.clock = time;
    double end = time;
    if (action.op == Op::forward || action.op == Op::backward) {
      const double seconds = action.op == Op::forward ? costs_.forward[stage] : costs_.backward[stage];
      count_live(action.op, stage);
      rank.busy += seconds;
      end = rank.clock = time + seconds;
    } else if (is_send(action.op)) {
      end = send(action, time);
    }
    result_.steps.push_back({action, index, time, end});
  }

  /// When the message arrives.
  double send(const Action& action, double time) {
    const auto boundary = static_cast<size_t>(boundary_of(action));
    const auto& seconds =
        direction_of(action.op) == Direction::activation ? costs_.activation : costs_.gradient;
    Link& link = link_of(action);
    link.free_at = std::max(time, link.free_at) + seconds[boundary];
    link.arrivals.push_back(link.free_at);
    if (link.waiting_rank != kNobody) await(std::exchange(link.waiting_rank, kNobody));
    return link.free_at;
  }

  void count_live(Op op, size_t stage) {
    if (op == Op::forward) {
      result_.peak_live[stage] = std::max(result_.peak_live[stage], ++live_[stage]);
      if (keeps_) return;
    }
    --live_[stage];
  }

  void check_finished() const {
    std::string waits;
    for (size_t index = 0; index < ranks_.size(); ++index) {
      const auto& actions = plan_.ranks[index];
      const size_t position = ranks_[index].position;
      if (position == actions.size()) continue;
      waits += fmt::format("{}rank {} waits at position {} for {}", waits.empty() ? "" : ", ", index, position,
                           to_text(actions[position]));
    }
    if (!waits.empty()) throw InputError("plan runs into a deadlock: {}", waits);
  }

  const Plan& plan_;
  const CostModel& costs_;
  bool keeps_;  ///< whether a forward's micro-batch stays alive until its backward
  std::vector<Rank> ranks_;
  std::vector<Link> links_;
  std::vector<int> live_;
  /// Time and rank of the next action of every rank that is not waiting; the earliest on top.
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>> ready_;
  Simulation result_;
};

void check_costs(const Plan& plan, const CostModel& costs) {
  const auto stages = static_cast<size_t>(plan.stages);
  for (const auto& [name, seconds, count] : {std::tuple{"forward", &costs.forward, stages},
                                             {"backward", &costs.backward, stages},
                                             {"activation", &costs.activation, stages - 1},
                                             {"gradient", &costs.gradient, stages - 1}}) {
    if (seconds->size() != count) {
      throw InputError("cost model has {} entries for {}, expected {}", seconds->size(), name, count);
    }
    if (!std::ranges::all_of(*seconds, [](double value) { return value >= 0; })) {
      throw InputError("cost model has a negative entry for {}", name);
    }
  }
}

}  // namespace

CostModel CostModel::uniform(int stages, double forward, double backward, double message) {
  STRAIT_CHECK(stages >= 1, "a cost model for {} stages", stages);
  const auto count = static_cast<size_t>(stages);
  return {std::vector<double>(count, forward), std::vector<double>(count, backward),
          std::vector<double>(count - 1, message), std::vector<double>(count - 1, message)};
}

Simulation simulate(const Plan& plan, const CostModel& costs) {
  validate(plan, passes_of(plan));
  check_costs(plan, costs);
  return Simulator(plan, costs).run();
}

Simulation simulate(const Plan& plan) {
  return simulate(plan, CostModel::uniform(std::clamp(plan.stages, 1, kMaxStages), 1, 2, 0));
}

}  // namespace strait
