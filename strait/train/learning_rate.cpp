#include "strait/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "strait/base/kinds.h"

namespace strait {
namespace {

/// (1 + cos(pi * epoch / t_max)) / 2: PyTorch's CosineAnnealingLR with eta_min 0, stepped once an epoch.
double cosine_share(const ScheduleOptions& options, const SchedulePoint& at) {
  return (1 + std::cos(std::numbers::pi * at.epoch / options.t_max)) / 2;
}

double constant_share(const ScheduleOptions& /*options*/, const SchedulePoint& /*at*/) { return 1; }

/// Hugging Face's get_linear_schedule_with_warmup: rises from 0 to 1 over warmup_steps, which are no more than
/// all steps, and then falls to 0, where it would be after the last step.
double linear_share(const ScheduleOptions& options, const SchedulePoint& at) {
  const int64_t warmup = options.warmup_steps;
  if (at.step < warmup) return static_cast<double>(at.step) / static_cast<double>(warmup);
  const int64_t left = std::max<int64_t>(at.all_steps - at.step, 0);
  return static_cast<double>(left) / static_cast<double>(std::max<int64_t>(at.all_steps - warmup, 1));
}

}  // namespace

const std::vector<RateScheduleKind>& rate_schedule_kinds() {
  static const std::vector<RateScheduleKind> kKinds = {
      {.name = "cosine", .share = cosine_share},
      {.name = "constant", .share = constant_share},
      {.name = "linear", .share = linear_share, .has_warmup = true, .depends_on_end = true}};
  return kKinds;
}

const RateScheduleKind& rate_schedule_kind(std::string_view name) {
  return find_kind(rate_schedule_kinds(), name, "train.schedule.kind");
}

RateSchedule make_rate_schedule(const ScheduleOptions& options) {
  return [share = rate_schedule_kind(options.kind).share, options](const SchedulePoint& at) {
    return share(options, at);
  };
}

double learning_rate(const ScheduleOptions& schedule, double base, const SchedulePoint& at) {
  return base * make_rate_schedule(schedule)(at);
}

}  // namespace strait
