#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/pipeline/options.h"
#include "strait/pipeline/plan.h"

namespace strait {

/// What a schedule is made for.
struct ScheduleSize {
  int stages = 1;           ///< of the whole pipeline
  int micro_batches = 1;    ///< of a batch
  int stages_per_rank = 1;  ///< more than one for `interleaved` alone; divides the stages
};

/// Which version of its weights a stage has in the passes of a micro-batch, and when the optimizer steps.
enum class WeightVersions {
  one,  ///< the optimizer steps when all micro-batches of a batch have been through: the plan is of one batch
  stashed,  ///< a stage steps after every backward pass, which has the weights of its forward pass
  /// A stage steps after every backward pass, which has the newest weights. A forward pass has weights that are
  /// predicted for the time of its backward pass.
  predicted,
};

/// Whether every stage steps after each of its backward passes. Nothing then waits for the end of a batch: the
/// plan is of a stream of micro-batches, of which a stage does one backward pass before it takes in the next
/// where it has as many under way as there are stages from it on.
constexpr bool steps_per_micro_batch(WeightVersions versions) { return versions != WeightVersions::one; }

/// What makes the plans of training: one of schedule_names(), or a function of the user's own.
class Schedule {
 public:
  /// Makes the compute-only plan of a size.
  using Make = std::function<Plan(const ScheduleSize& size)>;

  /// The schedule of that name; plan() says when there is none.
  Schedule(const char* name) : Schedule(std::string(name)) {}  // NOLINT(google-explicit-constructor)

  /// The schedule of that name; plan() says when there is none.
  Schedule(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)

  /// `make` gives the compute-only plan of any number of micro-batches, with stage `s` on rank `s mod R`, where
  /// R is stages / stages_per_rank.
  Schedule(std::string name, Make make) : name_(std::move(name)), make_(std::move(make)) {}

  /// The name, for messages.
  const std::string& name() const { return name_; }

  /// Whether it is the user's own, or there is one of its name.
  bool is_known() const;

  /// Of a schedule of the user's own WeightVersions::one. Throws InputError where there is none of that name.
  WeightVersions weight_versions() const;

  /// The compute-only plan. Throws what make_schedule() throws, and InputError where a plan of the user's own
  /// is not of that size or places a stage elsewhere.
  Plan plan(const ScheduleSize& size) const;

 private:
  std::string name_;
  Make make_;
};

// The generators give compute-only plans, with stage `s` on rank `s` unless they say otherwise, and throw
// InputError when there is not at least one stage and one micro-batch.

/// All forwards, then all backwards (Huang et al. 2019, GPipe). A stage keeps every micro-batch alive.
Plan gpipe(int stages, int micro_batches);

/// Stage `s` runs min(stages - s, micro_batches) forwards and then one backward and one forward in turn
/// (Narayanan et al. 2019, PipeDream-Flush), so that it keeps at most that many micro-batches alive.
Plan one_f_one_b(int stages, int micro_batches);

/// Interleaved 1F1B (Narayanan et al. 2021, Megatron-LM): stage `s` lives on rank `s mod R`, where R is
/// stages / stages_per_rank. Micro-batches go in groups of R through a rank's first stage, then through its
/// second, and so on; after (R - rank - 1) * 2 + (stages_per_rank - 1) * R forwards comes one forward and one
/// backward in turn. With stages of equal cost the bubble is that of 1F1B over stages_per_rank.
///
/// Any number of micro-batches will do: where R does not divide it, the plan is the one of the next multiple
/// without the micro-batches that are too many. Nothing depends on those, so it can run because that one can.
/// One stage per rank leaves nothing to interleave and gives 1F1B. Throws InputError where stages_per_rank does
/// not divide the stages.
Plan interleaved(const ScheduleSize& size);

/// Forwards alone, for evaluation; stage `s` on rank `s mod R` as in interleaved().
Plan forward_only(int stages, int micro_batches, int stages_per_rank = 1);

/// Of what a rank does in a plan of a stream of micro-batches, in order: what its stages do from where they
/// take in micro-batch `begin` to where they take in micro-batch `end`. A stage takes one in with the receive
/// before its forward pass; the first stage, with that pass.
std::vector<Action> window(const std::vector<Action>& actions, int begin, int end);

/// The names that make_schedule() takes.
const std::vector<std::string>& schedule_names();

/// The compute-only training plan of that name. Throws InputError with the nearest right name for a misspelt
/// one, and for several stages per rank where the schedule takes one.
Plan make_schedule(std::string_view name, const ScheduleSize& size);

/// Throws InputError where there is no schedule of that name.
WeightVersions weight_versions(std::string_view name);

/// Checks that the schedule can have that many stages per rank. Throws InputError otherwise.
void check_stages_per_rank(std::string_view name, const ScheduleSize& size);

/// Throws InputError when so many processes cannot run so many stages: in each replica of the pipeline one for
/// each rank of a plan, or one for all.
void check_process_count(int stages, const PipelineOptions& options, int processes);

/// The compute-only plan with its messages: a send right after the action that makes its tensor, a receive
/// right before the action that needs it, also between two stages of one rank. An early send never holds
/// anything up because sends do not block; a receive any earlier could.
Plan lower(const Plan& plan);

/// The lowered plan with all stages on rank 0, in the order in which simulate() runs it at its default
/// costs: every stage does what it did, in the order in which it did it. Throws what simulate() throws.
Plan one_process(const Plan& plan);

}  // namespace strait
