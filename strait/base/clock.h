#pragma once

#include <chrono>

namespace strait {

/// Measures the time since it was made, in seconds of the steady clock.
class Stopwatch {
 public:
  /// Seconds since the stopwatch was made.
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace strait
