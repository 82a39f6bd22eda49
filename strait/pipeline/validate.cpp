#include "strait/pipeline/validate.h"

#include <array>
#include <optional>

#include "strait/base/error.h"

namespace strait {
namespace {

size_t index_of(Op op) { return static_cast<size_t>(op); }

constexpr Op kOps[kOpCount] = {Op::forward,         Op::backward,      Op::send_activation,
                               Op::recv_activation, Op::send_gradient, Op::recv_gradient};

/// Walks over the ranks. Because micro-batches go in increasing order, a counter for each stage and
/// operation says everything about the past.
class Validator {
 public:
  Validator(const Plan& plan, Passes passes) : plan_(plan), passes_(passes) {
    check_shape();
    done_.resize(static_cast<size_t>(plan.stages));
  }

  void run() {
    for (size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
      const auto& actions = plan_.ranks[rank];
      for (size_t position = 0; position < actions.size(); ++position) {
        if (const auto wrong = accept(actions[position], static_cast<int>(rank))) {
          throw InputError("plan rank {}, position {}, {}: {}", rank, position, to_text(actions[position]),
                           *wrong);
        }
      }
    }
    check_complete();
  }

 private:
  void check_shape() const {
    if (plan_.stages < 1 || plan_.stages > kMaxStages || plan_.micro_batches < 1 ||
        plan_.micro_batches > kMaxMicroBatches) {
      throw InputError("plan has {} stages and {} micro-batches", plan_.stages, plan_.micro_batches);
    }
    if (plan_.rank_of_stage.size() != static_cast<size_t>(plan_.stages)) {
      throw InputError("plan places {} of {} stages", plan_.rank_of_stage.size(), plan_.stages);
    }
    for (const int rank : plan_.rank_of_stage) {
      if (rank < 0 || static_cast<size_t>(rank) >= plan_.ranks.size()) {
        throw InputError("plan places a stage on rank {} of {}", rank, plan_.ranks.size());
      }
    }
  }

  /// Whether a stage has to do this operation at all.
  bool wanted(Op op, int stage) const {
    const bool trains = passes_ == Passes::forward_backward;
    const bool first = stage == 0;
    const bool last = stage == plan_.stages - 1;
    switch (op) {
      case Op::forward:
        return true;
      case Op::backward:
        return trains;
      case Op::send_activation:
        return !last;
      case Op::recv_activation:
        return !first;
      case Op::send_gradient:
        return trains && !first;
      case Op::recv_gradient:
        return trains && !last;
    }
    throw InternalError("operation {} does not exist", static_cast<int>(op));
  }

  /// What a stage does with a micro-batch right before `op`.
  std::optional<Op> predecessor(Op op, int stage) const {
    constexpr Op kChain[kOpCount] = {Op::recv_activation, Op::forward,  Op::send_activation,
                                     Op::recv_gradient,   Op::backward, Op::send_gradient};
    std::optional<Op> before;
    for (const Op link : kChain) {
      if (link == op) break;
      if (wanted(link, stage)) before = link;
    }
    return before;
  }

  /// Notes the action, or says what is wrong with it.
  std::optional<std::string> accept(const Action& action, int rank) {
    const auto& [op, stage, micro_batch] = action;
    if (stage < 0 || stage >= plan_.stages || plan_.rank_of_stage[static_cast<size_t>(stage)] != rank) {
      return "the stage is not on this rank";
    }
    if (!wanted(op, stage)) return "the stage has nothing of that kind to do";
    auto& done = done_[static_cast<size_t>(stage)];
    int& next = done[index_of(op)];
    if (next == plan_.micro_batches) return "the stage has done all of them";
    if (micro_batch != next) return fmt::format("{} has to come next", to_text({op, stage, next}));
    const auto before = predecessor(op, stage);
    if (before && done[index_of(*before)] <= micro_batch) {
      return fmt::format("{} has to come first", to_text({*before, stage, micro_batch}));
    }
    ++next;
    return std::nullopt;
  }

  void check_complete() const {
    for (int stage = 0; stage < plan_.stages; ++stage) {
      const int rank = plan_.rank_of_stage[static_cast<size_t>(stage)];
      for (const Op op : kOps) {
        const int done = done_[static_cast<size_t>(stage)][index_of(op)];
        if (wanted(op, stage) && done < plan_.micro_batches) {
          throw InputError("plan rank {}, position {}, end: {} is missing", rank,
                           plan_.ranks[static_cast<size_t>(rank)].size(), to_text({op, stage, done}));
        }
      }
    }
  }

  const Plan& plan_;
  Passes passes_;
  std::vector<std::array<int, kOpCount>> done_;
};

}  // namespace

Passes passes_of(const Plan& plan) {
  for (const auto& actions : plan.ranks) {
    for (const Action& action : actions) {
      const bool trains =
          action.op == Op::backward || action.op == Op::send_gradient || action.op == Op::recv_gradient;
      if (trains) return Passes::forward_backward;
    }
  }
  return Passes::forward_only;
}

void validate(const Plan& plan, Passes passes) { Validator(plan, passes).run(); }

}  // namespace strait
