#pragma once

#include <vector>

#include "strait/base/clock.h"

namespace strait::cli {

/// Says now and then who has not come: the first process of the others, the others of the first.
/// Throws StoppedWaiting once a stop was requested.
class RollCall {
 public:
  explicit RollCall(int rank) : rank_(rank) {}
  void operator()(const std::vector<int>& missing);

 private:
  int rank_;
  Stopwatch since_said_;
};

}  // namespace strait::cli
