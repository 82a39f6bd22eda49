#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strait/train/options.h"

namespace strait {

/// Where a training stands, in what schedules count.
struct SchedulePoint {
  int epoch = 0;          ///< from 0
  int64_t step = 0;       ///< optimizer steps taken
  int64_t all_steps = 0;  ///< of the whole training
};

/// The learning rate of the step that comes next, as a share of the optimizer's.
using RateSchedule = std::function<double(const SchedulePoint&)>;

/// A kind of schedule, and which of its options it reads.
struct RateScheduleKind {
  std::string name;  ///< in train.schedule.kind

  /// The share of the optimizer's learning rate at a point.
  double (*share)(const ScheduleOptions&, const SchedulePoint&);
  bool has_warmup = false;      ///< ScheduleOptions::warmup_steps in the place of t_max
  bool depends_on_end = false;  ///< on SchedulePoint::all_steps: a training cannot be made longer later
};

/// The list of them, one entry each (docs/adding_a_schedule.md).
const std::vector<RateScheduleKind>& rate_schedule_kinds();

/// The kind of that name. Throws InputError that lists the names.
const RateScheduleKind& rate_schedule_kind(std::string_view name);

/// The schedule that the options describe. Throws InputError for a kind that there is not.
RateSchedule make_rate_schedule(const ScheduleOptions& options);

/// base times the share.
double learning_rate(const ScheduleOptions& schedule, double base, const SchedulePoint& at);

}  // namespace strait
