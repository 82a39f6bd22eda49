#pragma once

namespace strait {

// Quantiles of distributions, 0 < share < 1, by additions, products and divisions of float64 alone: the same
// bits on every machine.

/// Of the normal distribution of mean 0 and deviation 1.
double normal_quantile(double share);

/// Of the Laplace distribution of mean 0 and mean magnitude 1.
double laplace_quantile(double share);

}  // namespace strait
