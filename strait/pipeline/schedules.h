#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strait/pipeline/plan.h"

namespace strait {

// The generators give compute-only plans with stage `s` on rank `s`, and throw InputError when there is not
// at least one stage and one micro-batch.

/// All forwards, then all backwards (Huang et al. 2019, GPipe). A stage keeps every micro-batch alive.
Plan gpipe(int stages, int micro_batches);

/// Stage `s` runs min(stages - s, micro_batches) forwards and then one backward and one forward in turn
/// (Narayanan et al. 2019, PipeDream-Flush), so that it keeps at most that many micro-batches alive.
Plan one_f_one_b(int stages, int micro_batches);

/// Forwards alone, for evaluation.
Plan forward_only(int stages, int micro_batches);

/// The names that make_schedule() takes.
const std::vector<std::string>& schedule_names();

/// The compute-only training plan of that name; throws InputError with the nearest right name otherwise.
Plan make_schedule(std::string_view name, int stages, int micro_batches);

/// Throws InputError when so many processes cannot run so many stages: one each, or one for all.
void check_stage_count(int stages, int processes);

/// The compute-only plan with its messages: a send right after the action that makes its tensor, a receive
/// right before the action that needs it, also between two stages of one rank. An early send never holds
/// anything up because sends do not block; a receive any earlier could.
Plan lower(const Plan& plan);

/// The lowered plan with all stages on rank 0, in the order in which simulate() runs it at its default
/// costs: every stage does what it did, in the order in which it did it. Throws what simulate() throws.
Plan one_process(const Plan& plan);

}  // namespace strait
