// fitted, daq, bounded and the gamma code of qsgd.

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <span>

#include "strait/codecs/laws.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

double mean_square_error(const std::string& spec, const at::Tensor& x) {
  return received(spec, x).sub(x).to(at::kDouble).square().mean().item<double>();
}

/// Numbers of the Laplace distribution, of mean 0 and mean magnitude 1.
at::Tensor laplace_tensor(int64_t count) {
  std::mt19937 random(1);
  std::exponential_distribution<float> magnitude(1);
  at::Tensor x = at::full({1, count}, 0.0F);
  for (int64_t i = 0; i < count; ++i)
    x.data_ptr<float>()[i] = (random() % 2 == 0 ? 1.0F : -1.0F) * magnitude(random);
  return x;
}

TEST(Laws, QuantilesAreThoseOfTheirShares) {
  for (const double share : {0.001953125, 0.03125, 0.25, 0.5, 0.75, 0.9, 0.998046875}) {
    const double x = normal_quantile(share);
    EXPECT_NEAR(std::erfc(-x / std::sqrt(2.0)) / 2, share, 1e-13);
    const double y = laplace_quantile(share);
    EXPECT_NEAR(y < 0 ? std::exp(y) / 2 : 1 - std::exp(-y) / 2, share, 1e-13);
  }
}

TEST(Daq, ErrorIsThatOfTheBestUniformSteps) {
  // Max 1960, table II, to more digits: the error of the best 2^b uniform steps for N(0, 1).
  const double published[] = {0.36338, 0.118846, 0.0374397, 0.0115429, 0.00349521, 0.00104005};
  at::Tensor x = normal_tensor({1, 1000000}, 1);
  x.mul_(3);
  const double variance = x.var().item<double>();
  for (int bits = 1; bits <= 6; ++bits) {
    const double error = mean_square_error(fmt::format("daq:{},scope=tensor", bits), x) / variance;
    EXPECT_NEAR(error / published[bits - 1], 1, 0.01) << bits;
  }
}

TEST(Daq, WhatIsPastTheLastStepBecomesTheLast) {
  at::Tensor x = normal_tensor({1, 1000}, 2);
  x.data_ptr<float>()[0] = 100;
  const auto got = values_of(received("daq:3,scope=sample", x));
  EXPECT_EQ(got[0], *std::ranges::max_element(got));
  EXPECT_LT(got[0], 50);
}

TEST(Fitted, ErrorIsBelowThatOfUniformStepsOnItsLaw) {
  const at::Tensor normal = normal_tensor({1, 100000}, 3);
  const at::Tensor laplace = laplace_tensor(100000);
  for (const int bits : {2, 3, 4, 5}) {
    const std::string uniform = fmt::format("quant:{},scope=sample,rounding=stochastic", bits);
    EXPECT_LT(mean_square_error(fmt::format("fitted:{}", bits), normal), mean_square_error(uniform, normal))
        << bits;
    EXPECT_LT(mean_square_error(fmt::format("fitted:{},law=laplace", bits), laplace),
              mean_square_error(uniform, laplace))
        << bits;
  }
}

/// Numbers whose magnitudes have Weibull's law of this shape, with either sign.
at::Tensor weibull_tensor(double shape, int64_t count) {
  std::mt19937 random(2);
  std::weibull_distribution<float> magnitude(static_cast<float>(shape), 1);
  at::Tensor x = at::full({1, count}, 0.0F);
  for (int64_t i = 0; i < count; ++i)
    x.data_ptr<float>()[i] = (random() % 2 == 0 ? 1.0F : -1.0F) * magnitude(random);
  return x;
}

TEST(Laws, MomentsAndRootsOfWeibullsLawAreThoseOfTheLibrarysGamma) {
  for (const double shape : {0.5, 1.0, 1.3, 2.0}) {
    EXPECT_NEAR(weibull_mean(shape) / std::tgamma(1 + 1 / shape), 1, 1e-12);
    EXPECT_NEAR(weibull_mean_square(shape) / std::tgamma(1 + 2 / shape), 1, 1e-12);
    // The share below a quantile, by the trapezoid rule in the cube root of x, where the density has no pole.
    const auto root_density = [shape](double x) {
      return std::pow(x, (shape - 1) / 3) * std::exp(-std::pow(x, shape) / 3);
    };
    const auto integral = [&](double end) {
      const int steps = 200000;
      double sum = 0;
      for (int i = 0; i < steps; ++i) {
        const double y = std::cbrt(end) * (i + 0.5) / steps;
        sum += root_density(y * y * y) * 3 * y * y * std::cbrt(end) / steps;
      }
      return sum;
    };
    const double whole = integral(std::pow(3 * 40.0, 1 / shape));
    for (const double share : {0.5625, 0.75, 0.96875}) {
      EXPECT_NEAR(0.5 + integral(weibull_root_quantile(shape, share)) / whole / 2, share, 1e-5) << shape;
      EXPECT_EQ(weibull_root_quantile(shape, 1 - share), -weibull_root_quantile(shape, share));
    }
  }
}

TEST(Fitted, EachGroupGetsTheLawOfItsOwnShape) {
  for (const double shape : {0.5, 0.8, 1.0, 1.4, 2.0}) {
    const at::Tensor x = weibull_tensor(shape, 100000);
    for (const int bits : {2, 3, 4, 5}) {
      EXPECT_LT(mean_square_error(fmt::format("fitted:{},law=weibull", bits), x),
                mean_square_error(fmt::format("quant:{},scope=sample,rounding=stochastic", bits), x))
          << shape << ", " << bits;
    }
    // The header of a group ends with its table.
    const auto payload = encoded(*make_codec("fitted:4,law=weibull"), x);
    EXPECT_EQ(std::to_integer<int>(payload[8]), std::lround(shape * 10) - 5) << shape;
  }
  auto damaged = encoded(*make_codec("fitted:4,law=weibull"), weibull_tensor(1, 100));
  damaged[8] = std::byte{16};
  EXPECT_THROW(decoded(*make_codec("fitted:4,law=weibull"), damaged, {{1, 100}}), WireError);
}

double euclidean_norm(const at::Tensor& x) { return x.to(at::kDouble).norm().item<double>(); }

TEST(Fitted, AMeanOfNegativeZerosIsZeroOnEveryPath) {
  for (const int64_t size : {16, 64, 100, 192}) {
    const at::Tensor x = at::full({1, size}, -0.0F);
    for (const char* spec :
         {"fitted:2", "fitted:2,law=laplace", "fitted:2,law=weibull", "daq:2,scope=sample"}) {
      const auto codec = make_codec(spec);
      const auto payload = encoded(*codec, x);
      EXPECT_TRUE(
          std::ranges::all_of(std::span(payload).first(4), [](std::byte b) { return b == std::byte{0}; }))
          << spec << ", " << size;
      EXPECT_TRUE(same_bits(codec->reconstruct(x, {}), decoded(*codec, payload, meta_of(x))))
          << spec << ", " << size;
    }
  }
}

TEST(Bounded, KeepsTheBoundWithTheFewestBits) {
  for (const auto& [name, x] : finite_inputs()) {
    if (x.numel() == 0 || x.dim() == 0) continue;
    SCOPED_TRACE(name);
    for (const char* share : {"0.3", "0.03", "0.003"}) {
      const auto codec = make_codec(std::string("bounded:") + share);
      const auto payload = encoded(*codec, x);
      const at::Tensor seen = decoded(*codec, payload, meta_of(x));
      for (int64_t row = 0; row < x.size(0); ++row) {
        const at::Tensor group = x.narrow(0, row, 1).contiguous();
        const double most = std::stod(share) * euclidean_norm(group);
        EXPECT_LE(euclidean_norm(seen.narrow(0, row, 1).sub(group)), most * (1 + 1e-5))
            << share << " row " << row;
        const int bits = std::to_integer<int>(payload[static_cast<size_t>(row)]);
        if (bits == 1) continue;
        const int fewer = bits == 32 ? 8 : bits - 1;
        if (euclidean_norm(group) > 1e38) continue;  // past what is looked at
        EXPECT_GT(euclidean_norm(received(fmt::format("quant:{}", fewer), group).sub(group)), most * (1 - 1e-5))
            << share << " row " << row << ", " << bits << " bits";
      }
    }
  }
}

TEST(Bounded, DamagedBitsAreRefused) {
  const auto codec = make_codec("bounded:0.1");
  const at::Tensor x = normal_tensor({1, 9}, 4);
  auto payload = encoded(*codec, x);
  for (const int bits : {0, 9, 31, 255}) {
    payload[0] = static_cast<std::byte>(bits);
    EXPECT_THROW(decoded(*codec, payload, meta_of(x)), WireError) << bits;
  }
  const auto raw = make_codec("bounded:0.000000001");
  payload = encoded(*raw, x);
  payload.back() = std::byte{0x7f};
  payload[payload.size() - 2] = std::byte{0x80};
  EXPECT_THROW(decoded(*raw, payload, meta_of(x)), WireError);
}

TEST(Elias, TheReceiverSeesWhatFixedCodesGiveAndFewLevelsTakeFewBits) {
  const at::Tensor x = normal_tensor({3, 1000}, 5);
  for (const int bits : {2, 4, 8}) {
    const MessageContext context{.seed = 1, .step = static_cast<uint64_t>(bits)};
    const std::string fixed = fmt::format("qsgd:{}", bits);
    EXPECT_TRUE(at::equal(received(fixed + ",code=elias", x, context), received(fixed, x, context)));
  }
  // Of 512 elements of equal size one level of s = 1 is about 1/23: a bit for most, 4 for few.
  const size_t bytes = encoded(*make_codec("qsgd:2,code=elias"), at::full({1, 5120}, 1.0F)).size() - 10 * 4;
  EXPECT_NEAR(static_cast<double>(bytes) * 8, 5120 * (1 + 3 / std::sqrt(512.0)), 200);
}

TEST(Elias, DamagedStreamsAreRefused) {
  const auto codec = make_codec("qsgd:3,code=elias");  // 3 levels
  const auto read = [&](std::vector<std::byte> stream) {
    std::vector<std::byte> payload(4);
    payload.insert(payload.end(), stream.begin(), stream.end());
    return values_of(decoded(*codec, payload, {{1, 4}}));
  };
  EXPECT_EQ(read({std::byte{0x0f}}).size(), 4U);  // four zeros
  EXPECT_THROW(read({std::byte{0x1f}}), WireError) << "padding";
  EXPECT_THROW(read({std::byte{0x0f}, std::byte{0}}), WireError) << "a byte too many";
  EXPECT_THROW(read({std::byte{0x07}}), WireError) << "an end too early";
  EXPECT_THROW(read({std::byte{0x0c}, std::byte{0xff}}), WireError) << "level 4";
}

}  // namespace
}  // namespace strait
