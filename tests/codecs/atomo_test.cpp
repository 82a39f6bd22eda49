// atomo against the probabilities of its definition, over many draws.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

constexpr size_t kMessages = 10000;
constexpr uint32_t kInFull = 0xffffffff;

uint32_t count_of(std::span<const std::byte> payload) {
  uint32_t count = 0;
  std::memcpy(&count, payload.data(), sizeof count);
  return count;
}

/// c by bisection: sum of min(1, c sigma) = r.
at::Tensor keeping_probabilities(const at::Tensor& sigma, double r) {
  double low = 0;
  double high = 1e9 / sigma.max().item<double>();
  for (int i = 0; i < 200; ++i) {
    const double c = (low + high) / 2;
    (sigma.mul(c).clamp_max(1).sum().item<double>() < r ? low : high) = c;
  }
  return sigma.mul(low).clamp_max(1);
}

struct Draws10000 {
  at::Tensor mean;           ///< of what the receiver sees, float64
  at::Tensor deviation;      ///< of one message
  double squared_error = 0;  ///< in the mean
  double kept = 0;           ///< triples in the mean, and their variance
  double kept_variance = 0;
  size_t in_full = 0;  ///< messages without triples
};

Draws10000 many_draws(const std::string& spec, const at::Tensor& x) {
  const auto codec = make_codec(spec);
  at::Tensor sum = at::zeros(x.sizes(), at::kDouble);
  at::Tensor squares = at::zeros(x.sizes(), at::kDouble);
  Draws10000 result;
  double kept_squares = 0;
  for (size_t step = 0; step < kMessages; ++step) {
    const MessageContext context{.seed = 7, .step = step};
    const auto payload = encoded(*codec, x, context);
    const at::Tensor seen = decoded(*codec, payload, meta_of(x), context).to(at::kDouble);
    sum += seen;
    squares += seen.square();
    result.squared_error += (seen - x).square().sum().item<double>() / kMessages;
    const uint32_t count = count_of(payload);
    result.in_full += count == kInFull ? 1 : 0;
    if (count == kInFull) continue;
    result.kept += static_cast<double>(count) / kMessages;
    kept_squares += static_cast<double>(count) * count / kMessages;
  }
  result.kept_variance = kept_squares - result.kept * result.kept;
  result.mean = sum / static_cast<double>(kMessages);
  result.deviation = (squares / static_cast<double>(kMessages) - result.mean.square()).clamp_min(0).sqrt();
  return result;
}

/// A matrix of the given singular values.
at::Tensor with_singular_values(int64_t rows, int64_t columns, const std::vector<double>& sigma) {
  const auto k = static_cast<int64_t>(sigma.size());
  const auto basis = [](int64_t n, int64_t of, unsigned seed) {
    return std::get<0>(at::linalg_qr(normal_tensor({n, of}, seed).to(at::kDouble)));
  };
  return basis(rows, k, 1)
      .mm(at::tensor(sigma, at::kDouble).diag())
      .mm(basis(columns, k, 2).t())
      .to(at::kFloat);
}

TEST(AtomoCodec, IsRightOnAverageAndKeepsAsManyTriplesAsItShould) {
  for (const auto& [spec, r, x] : std::vector<std::tuple<std::string, double, at::Tensor>>{
           {"atomo:1", 1, normal_tensor({8, 30}, 3)},
           {"atomo:3", 3, with_singular_values(16, 30, {50, 9, 4, 4, 2, 1, 0.5, 0.1})},
           {"atomo:2", 2, normal_tensor({4, 4, 5, 6}, 4)},
           {"atomo:2,matrix=square", 2, normal_tensor({1, 390}, 5)}}) {
    SCOPED_TRACE(spec);
    const Draws10000 draws = many_draws(spec, x);
    EXPECT_NEAR(draws.kept, r, 4 * std::sqrt(draws.kept_variance / kMessages) + 1e-12);
    EXPECT_GT(draws.kept_variance, 0);
    const at::Tensor error = (draws.mean - x).abs();
    const at::Tensor most = draws.deviation * (4 / std::sqrt(static_cast<double>(kMessages))) + 1e-5;
    EXPECT_TRUE(error.le(most).all().item<bool>()) << (error / most).max().item<double>();
    EXPECT_EQ(draws.in_full, 0);
  }
}

TEST(AtomoCodec, ItsVarianceIsThatOfTheProbabilities) {
  for (const auto& [spec, r] : std::vector<std::pair<std::string, double>>{{"atomo:1", 1}, {"atomo:3", 3}}) {
    const at::Tensor x = with_singular_values(8, 30, {50, 9, 4, 4, 2, 1, 0.5, 0.1});
    const at::Tensor sigma = at::linalg_svdvals(x.to(at::kDouble));
    const at::Tensor p = keeping_probabilities(sigma, r);
    const double expected = sigma.square().mul(p.reciprocal().sub(1)).sum().item<double>();
    EXPECT_NEAR(many_draws(spec, x).squared_error / expected, 1, 0.05) << spec;
  }
}

TEST(AtomoCodec, AMessageThatWouldBeLongerIsSentInFullAndStaysRightOnAverage) {
  const at::Tensor x = with_singular_values(8, 9, std::vector<double>(8, 2));  // from 5 triples on
  const Draws10000 draws = many_draws("atomo:3", x);
  EXPECT_GT(draws.in_full, 500);
  EXPECT_LT(draws.in_full, 5000);
  const at::Tensor most = draws.deviation * (4 / std::sqrt(static_cast<double>(kMessages))) + 1e-5;
  EXPECT_TRUE((draws.mean - x).abs().le(most).all().item<bool>());
}

TEST(AtomoCodec, WhatHasNoMoreTriplesArrives) {
  const at::Tensor x = with_singular_values(20, 30, {5, 0.01});
  for (const double scale : {1.0, 1e-30, 1e35}) {
    const at::Tensor scaled = x.mul(scale);
    for (const uint64_t step : {0, 1, 2}) {
      const at::Tensor error = received("atomo:2", scaled, {.step = step}) - scaled;
      EXPECT_LT(error.to(at::kDouble).norm().item<double>(),
                1e-6 * scaled.to(at::kDouble).norm().item<double>());
    }
  }
  const at::Tensor zero = at::zeros({20, 30});
  EXPECT_TRUE(same_bits(received("atomo:4", zero), zero));
  EXPECT_EQ(encoded(*make_codec("atomo:4"), zero).size(), 4U);
}

TEST(AtomoCodec, MicroBatchesDrawByTheirPlaceInTheBatch) {
  const at::Tensor x = normal_tensor({8, 30}, 6);
  std::vector<std::vector<std::byte>> payloads;
  for (size_t row = 0; row < 64; row += 8)
    payloads.push_back(encoded(*make_codec("atomo:1"), x, {.first_row = row}));
  std::ranges::sort(payloads);
  EXPECT_GT(std::ranges::unique(payloads).begin() - payloads.begin(), 2);
}

TEST(AtomoCodec, RefusesWhatItWouldNotShorten) {
  EXPECT_EQ(make_codec("atomo:2")->payload_size({{20, 30}}).bound, 4 + 4 * 600U);
  EXPECT_FALSE(make_codec("atomo:2")->payload_size({{20, 30}}).exact);
  try {
    make_codec("atomo:12")->payload_size({{20, 30}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "codec atomo:12 takes a message of shape [20, 30] as a matrix of 20 rows and 30 columns, of which it "
        "would send 2404 bytes, not fewer than the message's 2400");
  }
}

TEST(AtomoCodec, RefusesPayloadsThatNoTensorGives) {
  const auto codec = make_codec("atomo:1");
  const MessageMeta meta{{6, 40}};
  const auto payload = [](uint32_t count, size_t numbers, float value) {
    std::vector<std::byte> bytes(sizeof count + numbers * sizeof value);
    std::memcpy(bytes.data(), &count, sizeof count);
    for (size_t i = 0; i < numbers; ++i) std::memcpy(bytes.data() + 4 + 4 * i, &value, sizeof value);
    return bytes;
  };
  EXPECT_NO_THROW(decoded(*codec, payload(0, 0, 0), meta));
  EXPECT_NO_THROW(decoded(*codec, payload(5, 230, 1), meta));
  EXPECT_NO_THROW(decoded(*codec, payload(kInFull, 240, 1), meta));
  EXPECT_THROW(decoded(*codec, payload(6, 276, 1), meta), WireError) << "longer than the message";
  EXPECT_THROW(decoded(*codec, payload(kInFull - 1, 240, 1), meta), WireError);
  EXPECT_THROW(decoded(*codec, payload(5, 230, NAN), meta), WireError);
  EXPECT_THROW(decoded(*codec, payload(5, 230, 1e30F), meta), WireError) << "the product is too large";
  EXPECT_THROW(decoded(*codec, payload(kInFull, 240, INFINITY), meta), WireError);
}

TEST(AtomoCodec, RefusesWhatItDoesNotKnow) {
  for (const char* spec : {"atomo", "atomo:0", "atomo:1.5", "atomo:2,matrix=rows", "atomo:2,warm=yes"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
