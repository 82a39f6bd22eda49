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

/// e^-x, x >= 0.
double exp_of_minus(double x) {
  double term = 1;
  double sum = 1;
  for (int i = 1; i < 200; ++i) {
    term *= x / i;
    sum += term;
  }
  return 1 / sum;
}

/// The share of the normal distribution between 0 and x >= 0: its density at x times the sum of x^(2 i + 1) /
/// (2 i + 1)!!, all of whose terms are positive.
double normal_share(double x) {
  constexpr double kInverseRootOfTwoPi = 0.3989422804014327;
  double term = x;
  double sum = x;
  for (int i = 1; i < 400; ++i) {
    term *= x * x / (2 * i + 1);
    sum += term;
  }
  return kInverseRootOfTwoPi * exp_of_minus(x * x / 2) * sum;
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

}  // namespace strait
