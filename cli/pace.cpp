#include "cli/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace strait::cli {
namespace {

constexpr double kMeasurable = 0.05;  // seconds: a rate over less tells nothing

}  // namespace

bool PassRate::reach(std::string_view phase, int64_t done) {
  const bool begins = phase_ != phase || done <= done_;
  done_ = done;
  if (begins) {
    watch_ = Stopwatch();
    first_ = done;
    phase_ = phase;
  }
  return begins;
}

double PassRate::rate() const {
  const double seconds = watch_.seconds();
  return done_ > first_ && seconds >= kMeasurable ? static_cast<double>(done_ - first_) / seconds : NAN;
}

void EpochTimes::begin_pass(int epoch) {
  if (std::exchange(epoch_, epoch) != epoch) watch_ = Stopwatch();
}

double EpochTimes::run_left(int after) const {
  if (last_seconds_ == 0) return NAN;
  return std::max(0.0, last_seconds_ - watch_.seconds()) + after * last_seconds_;
}

}  // namespace strait::cli
