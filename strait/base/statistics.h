#pragma once

#include <span>

namespace strait {

/// The mean of one value at least.
double mean(std::span<const double> values);

/// The standard error of that mean: the deviation with n - 1 over the root of n; 0 of one value, which says
/// nothing.
double standard_error(std::span<const double> values);

}  // namespace strait
