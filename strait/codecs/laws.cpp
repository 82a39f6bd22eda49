#include "strait/codecs/laws.h"

namespace strait {
namespace {

/// Where `value`, which rises, passes `wanted` between `low` and `high`.
template <class Value>
double where(double wanted, double low, double high, const Value& value) {
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (value(middle) < wanted ? low : high) = middle;
  }
  return low;
}

/// first + first ratio(1) + first ratio(1) ratio(2) + .., whose terms are positive and at last fall.
template <class Ratio>
double series(double first, const Ratio& ratio) {
  double sum = 0;
  double next = first;
  for (int i = 1; sum + next != sum; ++i) {
    sum += next;
    next *= ratio(i);
  }
  return sum;
}

/// e^-x, x >= 0.
double exp_of_minus(double x) {
  return 1 / series(1, [x](int i) { return x / i; });
}

/// The share of the normal distribution between 0 and x >= 0: its density at x times the sum of x^(2 i + 1) /
/// (2 i + 1)!!, all of whose terms are positive.
double normal_share(double x) {
  constexpr double kInverseRootOfTwoPi = 0.3989422804014327;
  return kInverseRootOfTwoPi * exp_of_minus(x * x / 2) * series(x, [x](int i) { return x * x / (2 * i + 1); });
}

/// e^x.
double exp_of(double x) { return x < 0 ? exp_of_minus(-x) : 1 / exp_of_minus(x); }

/// The integral of t^(a - 1) e^-t from 0 to x = e^y, a > 0: x^a e^-x times the sum of x^i / (a (a + 1) ... (a +
/// i)), all of whose terms are positive.
double incomplete_gamma(double a, double y) {
  const double x = exp_of(y);
  return exp_of(a * y) * exp_of_minus(x) * series(1 / a, [=](int i) { return x / (a + i); });
}

constexpr double kGammaEnd = 4.4;  // beyond e^4.4 the integral has less than 1e-25 left, a <= 6

/// Gamma(a), 0.5 <= a <= 6.
double gamma_function(double a) { return incomplete_gamma(a, kGammaEnd); }

/// Where Gamma's distribution of shape a and scale 1 has this share below e^y, y <= kGammaEnd.
double log_of_gamma_quantile(double a, double share) {
  return where(share * gamma_function(a), -80, kGammaEnd, [a](double y) { return incomplete_gamma(a, y); });
}

/// The quantile of a distribution that is symmetric about 0: `upper` is that of shares from 1/2 on.
template <class Upper>
double symmetric_quantile(double share, const Upper& upper) {
  return share < 0.5 ? -upper(1 - share) : upper(share);
}

}  // namespace

double normal_quantile(double share) {
  return symmetric_quantile(share, [](double upper) { return where(upper - 0.5, 0, 10, normal_share); });
}

double laplace_quantile(double share) {
  return symmetric_quantile(share, [](double upper) {
    return where(upper, 0, 50, [](double x) { return 1 - exp_of_minus(x) / 2; });
  });
}

double weibull_root_quantile(double shape, double share) {
  return symmetric_quantile(share, [shape](double upper) {
    // The cube root of the magnitude's density, x^((c - 1) / 3) e^(-x^c / 3), is one of x^c / 3 by Gamma's law.
    const double a = (shape + 2) / (3 * shape);
    constexpr double kLogOfThree = 1.0986122886681098;
    return exp_of((log_of_gamma_quantile(a, 2 * upper - 1) + kLogOfThree) / shape);
  });
}

double weibull_mean(double shape) { return gamma_function(1 + 1 / shape); }

double weibull_mean_square(double shape) { return gamma_function(1 + 2 / shape); }

}  // namespace strait
