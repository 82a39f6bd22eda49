#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace strait::cli {

/// How far a pass over the samples has come, and the run that it is part of.
struct Pace {
  int epoch = -1;  ///< from 0; negative: the pass is not of an epoch
  int epochs = 0;
  std::string phase;
  int64_t done = 0;  ///< samples of the pass
  int64_t total = 1;
  double rate = NAN;      ///< samples per second; not a number where it is not known
  double run_left = NAN;  ///< seconds; not a number where it is not known
  double loss = NAN;
};

/// The bar of a terminal: one line of at most `width` characters, with what fits.
std::string bar_text(const std::string& label, const Pace& pace, size_t width);

/// A line for where there is no terminal.
std::string progress_line(const std::string& label, const Pace& pace);

/// Samples per second: `310`, or `3.1` where that tells something.
std::string rate_text(double rate);

}  // namespace strait::cli
