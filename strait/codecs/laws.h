#pragma once

namespace strait {

// Quantiles of distributions, 0 < share < 1, by additions, products and divisions of float64 alone: the same
// bits on every machine.

/// Of the normal distribution of mean 0 and deviation 1.
double normal_quantile(double share);

/// Of the Laplace distribution of mean 0 and mean magnitude 1.
double laplace_quantile(double share);

/// Of the distribution whose density is, but for a factor, the cube root of one by which magnitudes have
/// Weibull's law of this shape, 0.5 <= shape <= 2, and scale 1, and either sign.
double weibull_root_quantile(double shape, double share);

// Moments, likewise.

/// The mean of Weibull's law of this shape and scale 1.
double weibull_mean(double shape);

/// The mean square of Weibull's law of this shape and scale 1.
double weibull_mean_square(double shape);

}  // namespace strait
