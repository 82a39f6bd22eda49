#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "strait/base/clock.h"

namespace strait {

/// How often work is done for a median: a few times to warm up, then until the time is spent, but neither very
/// often nor too seldom.
struct Repetitions {
  int warm_up = 1;     ///< calls that do not count
  int least = 3;       ///< 1 at least
  int most = 25;       ///< calls that count, at most
  double seconds = 1;  ///< of the calls behind the warm-up
};

/// Calls `work` as often as `repetitions` say.
template <class Work>
void repeat(const Repetitions& repetitions, const Work& work) {
  for (int round = 0; round < repetitions.warm_up; ++round) work();
  const Stopwatch watch;
  for (int round = 0; round < repetitions.most; ++round) {
    if (round >= repetitions.least && watch.seconds() >= repetitions.seconds) return;
    work();
  }
}

/// Seconds of one call.
template <class Work>
double timed(const Work& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

/// Of one value at least; of an even number the greater of the two in the middle.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Times of the same work under repeat(). Those of the warm-up do not count.
class Times {
 public:
  /// For work whose first `warm_up` times do not count.
  explicit Times(int warm_up = Repetitions{}.warm_up) : warm_up_(warm_up) {}

  /// Adds the seconds of the next call.
  void add(double seconds) { all_.push_back(seconds); }

  /// There has to be a time that counts.
  double median() const { return strait::median({all_.begin() + warm_up_, all_.end()}); }

 private:
  int warm_up_;
  std::vector<double> all_;
};

}  // namespace strait
