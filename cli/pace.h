#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "strait/base/clock.h"

namespace strait::cli {

/// Measures how fast a pass over samples goes, from the end of its first batch: what comes before that is no
/// part of the rate.
class PassRate {
 public:
  /// Hears that `done` samples of a pass are done, in training or in a test. Says whether a pass begins with
  /// them: it is another phase than before, or they are not more than before. So training begins one again
  /// behind a test within an epoch.
  bool reach(std::string_view phase, int64_t done);

  /// Samples per second up to now; not a number where the time is too short to tell.
  double rate() const;

 private:
  Stopwatch watch_;
  std::string phase_;
  int64_t first_ = 0;
  int64_t done_ = 0;
};

/// Measures epochs, to say how long the rest of a run takes.
class EpochTimes {
 public:
  /// Hears that a pass of the epoch begins; negative: of none.
  void begin_pass(int epoch);

  /// Hears that the epoch is at its end.
  void end_epoch() { last_seconds_ = watch_.seconds(); }

  /// Seconds to the end of the run, `after` epochs behind this one, as long as the last one; in the first epoch
  /// not a number.
  double run_left(int after) const;

 private:
  int epoch_ = -1;
  Stopwatch watch_;
  double last_seconds_ = 0;  ///< of the last whole epoch; 0: there was none
};

}  // namespace strait::cli
