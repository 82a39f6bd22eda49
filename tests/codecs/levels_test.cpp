// Codecs that send a scale for each group and a level for each element, against the formulas in float64.

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

std::vector<float> values_received(const std::string& spec, const at::Tensor& x,
                                   const MessageContext& context = {}) {
  return values_of(received(spec, x, context));
}

double largest_of(std::span<const float> x) {
  double largest = 0;
  for (const float value : x) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

TEST(Symmetric, IsTheNearestStepOfTheLargestMagnitude) {
  const at::Tensor x = normal_tensor({3, 70}, 1);
  const auto values = values_of(x);
  for (const int bits : {2, 3, 4, 8}) {
    const double levels = std::pow(2, bits - 1) - 1;
    const auto got = values_received(fmt::format("quant:{},levels=symmetric,scope=sample", bits), x);
    for (size_t i = 0; i < values.size(); ++i) {
      const double scale = largest_of(std::span(values).subspan(i / 70 * 70, 70));
      const double t = values[i] / scale * levels;
      EXPECT_LE(std::abs(got[i] - values[i]), scale / (2 * levels) * (1 + 1e-6)) << bits << " " << i;
      if (std::abs(t - std::floor(t) - 0.5) > 1e-4) {
        EXPECT_NEAR(got[i], std::nearbyint(t) / levels * scale, scale * 1e-6) << bits << " " << i;
      }
    }
  }
}

TEST(Symmetric, OfTwoStepsTheEvenOneAndZeroStaysZero) {
  at::Tensor x = at::full({1, 5}, 3.0F);  // of 3 levels: t is the element itself
  const float halves[] = {0.5F, 1.5F, -2.5F, 0.0F};
  for (int64_t i = 0; i < 4; ++i) x.data_ptr<float>()[i] = halves[i];
  EXPECT_EQ(values_received("quant:3,levels=symmetric", x), (std::vector<float>{0, 2, -2, 0, 3}));
}

TEST(Exponential, ReceiversSeePowersOfTwoBesideTheElement) {
  const at::Tensor x = normal_tensor({2, 90}, 2);
  const auto values = values_of(x);
  for (const int bits : {2, 3, 4, 6}) {
    const int least = -(1 << (bits - 1)) + 2;  // exponent of the least level
    const auto got = values_received(fmt::format("exponential:{}", bits), x, {.seed = 1, .step = 2});
    for (size_t i = 0; i < values.size(); ++i) {
      const double scale = largest_of(std::span(values).subspan(i / 90 * 90, 90));
      const double t = std::abs(values[i]) / scale;
      const int below = static_cast<int>(std::floor(std::log2(t)));
      const double lower = below < least ? 0 : std::exp2(below);
      const double upper = below < least ? std::exp2(least) : (t == lower ? lower : 2 * lower);
      const double seen = std::abs(got[i]) / scale;
      EXPECT_TRUE(std::abs(seen - lower) < 1e-6 || std::abs(seen - upper) < 1e-6)
          << bits << " " << t << " " << seen;
      if (got[i] != 0) {
        EXPECT_EQ(got[i] < 0, values[i] < 0);
      }
    }
  }
}

TEST(Qsgd, ReceiversSeeLevelsOfTheNormBesideTheElement) {
  const at::Tensor x = normal_tensor({2, 90}, 3);
  const auto values = values_of(x);
  for (const int bits : {2, 4, 8}) {
    const double levels = std::pow(2, bits - 1) - 1;
    const auto got = values_received(fmt::format("qsgd:{}", bits), x, {.seed = 1, .step = 2});
    for (size_t row = 0; row < 2; ++row) {
      double squares = 0;
      for (size_t i = 90 * row; i < 90 * (row + 1); ++i) squares += static_cast<double>(values[i]) * values[i];
      const double norm = std::sqrt(squares);
      for (size_t i = 90 * row; i < 90 * (row + 1); ++i) {
        const double t = std::abs(values[i]) / norm * levels;
        const double level = std::abs(got[i]) / norm * levels;
        EXPECT_NEAR(level, std::nearbyint(level), 1e-4);
        EXPECT_LT(std::abs(level - t), 1 + 1e-4);
        if (got[i] != 0) {
          EXPECT_EQ(got[i] < 0, values[i] < 0);
        }
      }
    }
  }
}

TEST(Qsgd, NormsOfVeryLargeAndVerySmallElementsAreRight) {
  for (const float size : {1e-42F, 1e-30F, 1e18F, 1e37F}) {
    const auto got = values_received("qsgd:8", at::full({1, 4}, size));
    double mean = 0;  // of levels between 63 and 64
    for (const float value : got) mean += value / 4;
    EXPECT_NEAR(mean / size, 1, 0.02) << size;
  }
}

TEST(Natural, ReceiversSeePowersOfTwoBesideTheElement) {
  const at::Tensor x = normal_tensor({2, 700}, 4);
  const auto values = values_of(x);
  const auto got = values_received("natural", x, {.seed = 1});
  for (size_t i = 0; i < values.size(); ++i) {
    int exponent = 0;
    EXPECT_EQ(std::abs(std::frexp(got[i], &exponent)), 0.5F);
    const double ratio = static_cast<double>(got[i]) / values[i];
    EXPECT_TRUE(ratio > 0.5 && ratio < 2) << values[i] << " " << got[i];
  }
}

TEST(Natural, ZerosPowersAndTheEndsOfTheRange) {
  const std::vector<float> exact = {0.0F, -0.0F, 1.0F, -0.25F, 0x1p127F, 0x1p-126F};
  at::Tensor x = at::full({1, static_cast<int64_t>(exact.size())}, 0.0F);
  std::memcpy(x.data_ptr(), exact.data(), exact.size() * sizeof(float));
  EXPECT_TRUE(same_bits(decoded(*make_codec("natural"), encoded(*make_codec("natural"), x), meta_of(x)), x));
  std::set<float> seen;
  for (uint64_t step = 0; step < 100; ++step) {
    seen.insert(values_received("natural", at::full({1, 1}, 0x1p-128F), {.step = step})[0]);
  }
  EXPECT_EQ(seen, (std::set<float>{0.0F, 0x1p-126F}));
  EXPECT_THROW(encoded(*make_codec("natural"), at::full({1, 1}, 0x1.000002p127F)), NumericError);
  EXPECT_EQ(make_codec("natural")->payload_size({{3, 50}}).bound, 150U + 19U);
}

TEST(LevelsOnTheWire, RefuseWhatNoTensorGives) {
  const MessageMeta meta{{1, 4}};
  for (const char* spec : {"quant:4,levels=symmetric", "qsgd:4", "exponential:4", "fp8:e4m3"}) {
    const auto codec = make_codec(spec);
    const auto good = encoded(*codec, normal_tensor({1, 4}, 5));
    for (const float bad : {-1.0F, -0.0F, INFINITY, std::nanf("")}) {
      auto payload = good;
      std::memcpy(payload.data(), &bad, sizeof bad);
      EXPECT_THROW(decoded(*codec, payload, meta), WireError) << spec << " " << bad;
    }
    auto payload = good;
    payload.back() = std::byte{0xff};  // the code behind the greatest level, or a NaN
    EXPECT_THROW(decoded(*codec, payload, meta), WireError) << spec;
  }
  EXPECT_THROW(decoded(*make_codec("natural"), std::vector<std::byte>(5, std::byte{0x0f}), {{1, 5}}),
               WireError);
  auto payload = encoded(*make_codec("natural"), normal_tensor({1, 4}, 5));
  payload.back() = std::byte{0xff};
  EXPECT_THROW(decoded(*make_codec("natural"), payload, meta), WireError);
  payload = encoded(*make_codec("natural"), normal_tensor({1, 4}, 5));
  payload.front() |= std::byte{0x10};
  EXPECT_THROW(decoded(*make_codec("natural"), payload, meta), WireError);
}

TEST(Levels, AGroupIsAChannelWhereTheScopeSaysSo) {
  // One channel is a hundred times as large as the other; in a scale of its own it keeps its relative error.
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 2, 4, 5}, {7, 2}, {3, 5, 2}}) {
    at::Tensor x = normal_tensor(shape, 6);
    const int64_t dimension = shape.size() == 4 ? 1 : static_cast<int64_t>(shape.size()) - 1;
    x.select(dimension, 1).mul_(100);
    for (const char* spec : {"quant:6,scope=channel", "quant:6,scope=channel,levels=symmetric"}) {
      const auto codec = make_codec(spec);
      EXPECT_FALSE(codec->is_row_wise());
      const at::Tensor error = decoded(*codec, encoded(*codec, x), meta_of(x)).sub(x).abs();
      for (int64_t channel = 0; channel < 2; ++channel) {
        const double largest = x.select(dimension, channel).abs().max().item<double>();
        EXPECT_LE(error.select(dimension, channel).max().item<double>(), largest / 31 * 1.01) << spec;
      }
    }
  }
}

}  // namespace
}  // namespace strait
