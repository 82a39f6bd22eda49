// Codecs that round at random are right on average, and their variance keeps the bound of their source.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

constexpr size_t kDraws = 10000;

struct Moments {
  std::vector<double> mean;
  std::vector<double> variance;
};

Moments moments_of(const Codec& codec, const at::Tensor& x) {
  const auto count = static_cast<size_t>(x.numel());
  Moments moments{std::vector<double>(count), std::vector<double>(count)};
  for (size_t step = 0; step < kDraws; ++step) {
    const MessageContext context{.seed = 3, .step = step};
    const auto seen = values_of(decoded(codec, encoded(codec, x, context), meta_of(x), context));
    for (size_t i = 0; i < count; ++i) {
      moments.mean[i] += seen[i];
      moments.variance[i] += static_cast<double>(seen[i]) * seen[i];
    }
  }
  for (size_t i = 0; i < count; ++i) {
    moments.mean[i] /= kDraws;
    moments.variance[i] = moments.variance[i] / kDraws - moments.mean[i] * moments.mean[i];
  }
  return moments;
}

double square_norm(const std::vector<float>& x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

struct Case {
  std::string spec;
  std::function<double(double n)> bound;  ///< of the variance over the square of norm2, for n elements; or none
};

class Unbiased : public testing::TestWithParam<Case> {};

TEST_P(Unbiased, TheMeanOfManyMessagesIsTheMessage) {
  const auto& [spec, bound] = GetParam();
  const auto codec = make_codec(spec);
  const at::Tensor x = normal_tensor({2, 48}, 31);
  const auto values = values_of(x);
  const Moments moments = moments_of(*codec, x);
  double variance = 0;
  double squares_of_errors = 0;  // in units of their variances
  size_t moving = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double error = moments.mean[i] - values[i];
    const double deviation = std::sqrt(std::max(moments.variance[i], 0.0) / kDraws);
    const double rare = 8 * std::abs(values[i]) / kDraws;  // a neighbour that was hardly ever drawn
    EXPECT_LE(std::abs(error), 4 * deviation + rare) << i;
    variance += moments.variance[i];
    if (deviation < 1e-6) continue;
    squares_of_errors += error * error / (deviation * deviation);
    ++moving;
  }
  ASSERT_GT(moving, values.size() / 2);
  EXPECT_LT(std::abs(squares_of_errors / static_cast<double>(moving) - 1),
            4 * std::sqrt(2 / static_cast<double>(moving)));
  if (bound) {
    EXPECT_LE(variance, bound(48) * square_norm(values));
  }
}

std::function<double(double n)> qsgd_bound(double levels) {
  return [=](double n) { return std::min(n / (levels * levels), std::sqrt(n) / levels); };
}

INSTANTIATE_TEST_SUITE_P(
    Codecs, Unbiased,
    testing::Values(Case{"qsgd:2,scope=sample", qsgd_bound(1)}, Case{"qsgd:4", qsgd_bound(7)},
                    Case{"qsgd:6,scope=sample", qsgd_bound(31)}, Case{"fitted:4", {}},
                    Case{"fitted:3,law=laplace,scope=tensor", {}}, Case{"fitted:4,law=weibull", {}},
                    Case{"natural", [](double) { return 1.0 / 8; }}, Case{"exponential:2", {}},
                    Case{"exponential:4", {}}, Case{"exponential:8,scope=tensor", {}},
                    Case{"quant:2,rounding=stochastic", {}},
                    Case{"random:0.5,scale=unbiased,values=exponential:3", {}},
                    Case{"quant:3,levels=symmetric,rounding=stochastic", {}},
                    Case{"quant:3,scope=sample,rounding=stochastic,rotate=hadamard", {}}),
    [](const testing::TestParamInfo<Case>& info) {
      std::string name = info.param.spec;
      std::ranges::replace_if(
          name, [](char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace strait
