// outliers against its definition in float64.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

/// The message as rows [R, C, I]: rows of the last dimension, or of four dimensions the samples.
at::Tensor rows_of(const at::Tensor& x) {
  if (x.dim() == 4) return x.reshape({x.size(0), x.size(1), -1});
  return x.reshape({-1, x.size(-1), 1});
}

/// Where a channel has an element of the threshold or more, [1, C, 1].
at::Tensor outlier_channels(const at::Tensor& rows, double threshold) {
  return rows.abs().amax({0, 2}, true).ge(threshold);
}

at::Tensor seen_of_outliers(const at::Tensor& x, int bits, double threshold) {
  const at::Tensor rows = rows_of(x);
  const at::Tensor is_outlier = outlier_channels(rows, threshold);
  const at::Tensor others = rows.to(at::kDouble).masked_fill(is_outlier, 0);
  const at::Tensor largest = others.abs().amax({1, 2}, true);
  const at::Tensor step = largest.mul(2 / std::exp2(bits));
  const at::Tensor code = others.add(largest).div(step).floor().clamp_max(std::exp2(bits) - 1);
  const at::Tensor middle = code.add(0.5).mul(step).sub(largest).masked_fill(largest.eq(0), 0);
  return at::where(is_outlier, rows.to(at::kHalf).to(at::kDouble), middle).view(x.sizes());
}

/// Normal numbers of deviation 1, with channel 3 twenty times as large.
at::Tensor with_outliers(const std::vector<int64_t>& shape) {
  at::Tensor x = normal_tensor(shape, 1).clone();
  x.select(shape.size() == 4 ? 1 : -1, 3).mul_(20);
  return x;
}

TEST(OutliersCodec, IsWhatItsDefinitionSays) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{5, 37}, {2, 9, 70}, {3, 6, 4, 5}, {2, 2, 3, 2, 66}}) {
    for (const int bits : {2, 4, 8}) {
      for (const double threshold : {6.0, 0.5, 1000.0}) {
        const at::Tensor x = with_outliers(shape);
        const std::string spec = fmt::format("outliers:{},threshold={}", bits, threshold);
        EXPECT_LT((received(spec, x) - seen_of_outliers(x, bits, threshold)).abs().max().item<double>(), 1e-5)
            << spec;
      }
    }
  }
}

TEST(OutliersCodec, APlantedOutlierLeavesTheOthersErrorBelowTheirRowsMaximum) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{64, 37}, {4, 16, 768}, {6, 8, 5, 5}}) {
    const at::Tensor x = with_outliers(shape);
    const at::Tensor is_outlier = outlier_channels(rows_of(x), 6);
    EXPECT_EQ(is_outlier.sum().item<int64_t>(), 1);
    const at::Tensor row_largest =
        rows_of(x).masked_fill(is_outlier, 0).abs().amax({1, 2}, true).to(at::kDouble);
    for (int bits = 2; bits <= 8; ++bits) {
      const at::Tensor error = rows_of(received(fmt::format("outliers:{}", bits), x) - x).to(at::kDouble).abs();
      const at::Tensor share = error.masked_fill(is_outlier, 0).div(row_largest).mul(std::exp2(bits));
      EXPECT_LE(share.max().item<double>(), 1 + std::exp2(bits - 22)) << bits;  // and the rounding of float32
      EXPECT_GT(share.max().item<double>(), 0.9) << "the bound is a tight one";
    }
  }
}

TEST(OutliersCodec, OutliersArriveAsFp16) {
  const at::Tensor x = with_outliers({4, 3, 50});
  const at::Tensor seen = received("outliers:4", x);
  EXPECT_TRUE(at::equal(seen.select(2, 3), x.select(2, 3).to(at::kHalf).to(at::kFloat)));
}

TEST(OutliersCodec, TheThresholdItselfIsAnOutlier) {
  const at::Tensor x = at::zeros({2, 5});
  x[1][0] = -6;
  x[0][4] = std::nextafter(6.0F, 0.0F);
  EXPECT_EQ(std::to_integer<unsigned>(encoded(*make_codec("outliers:4"), x).front()), 1U);
  x[0][4] = 6;
  EXPECT_EQ(std::to_integer<unsigned>(encoded(*make_codec("outliers:4"), x).front()), 0b10001U);
}

TEST(OutliersCodec, ZerosWithoutOthersStayZero) {
  const at::Tensor x = at::zeros({3, 8});
  x[1][2] = 7;
  EXPECT_TRUE(at::equal(received("outliers:2", x), x));
}

TEST(OutliersCodec, SizeFollowsTheOutliers) {
  const auto size = [](const at::Tensor& x) { return encoded(*make_codec("outliers:3"), x).size(); };
  const at::Tensor x = at::ones({10, 21});
  EXPECT_EQ(size(x), 3 + 10 * (4 + 8U));
  EXPECT_EQ(size(with_outliers({10, 21}).clamp(-100, 100).mul(
                at::ones({21}).scatter(0, at::tensor({3}, at::kLong), 1))),
            3 + 10 * (4 + 8 + 2U));
  EXPECT_EQ(size(x.mul(7)), 3 + 10 * (4 + 42U));
  const auto [bound, exact] = make_codec("outliers:3")->payload_size(meta_of(x));
  EXPECT_EQ(bound, 3 + 10 * (4 + 42U));
  EXPECT_FALSE(exact);
}

TEST(OutliersCodec, RefusesWhatFp16CannotHold) {
  const at::Tensor x = at::zeros({2, 5});
  x[1][3] = 65519;
  EXPECT_NO_THROW(encoded(*make_codec("outliers:4"), x));
  x[1][3] = -65520;
  try {
    encoded(*make_codec("outliers:4"), x);
    FAIL();
  } catch (const NumericError& error) {
    EXPECT_STREQ(error.what(), "a value of magnitude 65520 is past the range of fp16");
  }
}

TEST(OutliersCodec, RefusesPayloadsThatNoTensorGives) {
  // One of 5 channels: a byte of channels, scales from 1 on, codes of a byte and a half from 9 on, fp16 from 13
  // on.
  const at::Tensor x = normal_tensor({2, 5}, 2);
  x[1][2] = 8;
  const auto codec = make_codec("outliers:3");
  const auto good = encoded(*codec, x);
  ASSERT_EQ(good.size(), 17U);
  EXPECT_NO_THROW(decoded(*codec, good, meta_of(x)));
  const auto expect_refused = [&](size_t place, std::initializer_list<unsigned> bytes) {
    auto bad = good;
    for (const unsigned byte : bytes) bad[place++] = static_cast<std::byte>(byte);
    EXPECT_THROW(decoded(*codec, bad, meta_of(x)), WireError) << place;
  };
  expect_refused(0, {0x24});              // a channel that is none
  expect_refused(0, {0x06});              // two channels
  expect_refused(1, {0, 0, 0xc0, 0x40});  // a scale of 6
  expect_refused(1, {0, 0, 0x80, 0xbf});  // of -1
  expect_refused(5, {0, 0, 0, 0x80});     // of -0
  expect_refused(5, {0, 0, 0xc0, 0x7f});  // that is no number
  expect_refused(10, {0xff});             // padding
  expect_refused(15, {0x00, 0x7c});       // infinity
  expect_refused(15, {0xff, 0x45});       // 5.996
}

TEST(OutliersCodec, RefusesWhatItDoesNotKnow) {
  for (const char* spec :
       {"outliers", "outliers:1", "outliers:9", "outliers:4,threshold=0", "outliers:4,threshold=-6",
        "outliers:4,threshold=65505", "outliers:4,threshold=six", "outliers:4,scope=sample"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
  EXPECT_THROW(make_codec("outliers:4")->payload_size({{12}}), InputError);
}

}  // namespace
}  // namespace strait
