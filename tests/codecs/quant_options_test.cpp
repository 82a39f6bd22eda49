// rotate=hadamard and spikes=1 around quant, and ranges=bf16 within.

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

double square_error(const std::string& spec, const at::Tensor& x) {
  return received(spec, x).sub(x).square().sum().item<double>();
}

TEST(Rotated, AnOutlierIsSharedByItsBlock) {
  // Beside one large value 4 bits leave the others nothing; a rotation spreads it.
  at::Tensor x = normal_tensor({4, 256}, 1).mul_(0.1);
  for (int64_t row = 0; row < 4; ++row) x.data_ptr<float>()[row * 256 + 70 * row] = 10;
  EXPECT_LT(square_error("quant:4,scope=block:64,rotate=hadamard", x),
            square_error("quant:4,scope=block:64", x) / 2);
}

TEST(Rotated, TheRestOfARowIsQuantisedAsItStands) {
  const at::Tensor x = normal_tensor({2, 100}, 2);
  const at::Tensor rest = received("quant:3,scope=block:64,rotate=hadamard", x).narrow(1, 64, 36);
  EXPECT_TRUE(at::equal(rest, received("quant:3,scope=block:64", x).narrow(1, 64, 36)));
  const at::Tensor small = normal_tensor({3, 50}, 3);
  EXPECT_TRUE(at::equal(received("quant:3,rotate=hadamard", small), received("quant:3", small)));
}

TEST(Rotated, SignsComeFromTheMessagesPlaceInTheRun) {
  const at::Tensor x = normal_tensor({2, 128}, 4);
  const auto codec = make_codec("quant:4,rotate=hadamard");
  const auto payload = encoded(*codec, x, {.seed = 1, .step = 1});
  EXPECT_EQ(encoded(*codec, x, {.seed = 1, .step = 1, .micro_batch = 2, .first_row = 4}), payload);
  EXPECT_NE(encoded(*codec, x, {.seed = 2, .step = 1}), payload);
  EXPECT_NE(encoded(*codec, x, {.seed = 1, .step = 2}), payload);
  EXPECT_NE(encoded(*codec, x, {.seed = 1, .boundary = 1, .step = 1}), payload);
  EXPECT_NE(encoded(*codec, x, {.seed = 1, .direction = Direction::gradient, .step = 1}), payload);
}

TEST(Rotated, WhatMayOverflowOnTheWayIsRefused) {
  const auto codec = make_codec("quant:4,rotate=hadamard");
  EXPECT_NO_THROW(received("quant:4,rotate=hadamard", at::full({1, 64}, 0x1.fp120F)));
  EXPECT_THROW(encoded(*codec, at::full({1, 64}, 0x1p121F)), NumericError);
  auto payload = encoded(*codec, normal_tensor({1, 64}, 5));
  const float range[] = {-3e38F, 1e37F};  // what comes back of 64 such numbers is past float32
  std::memcpy(payload.data(), range, sizeof range);
  EXPECT_THROW(decoded(*codec, payload, {{1, 64}}), WireError);
}

TEST(Spiked, TheEndsOfEachGroupArriveExactlyAndTheRestIsFiner) {
  at::Tensor x = normal_tensor({3, 80}, 6);
  for (int64_t i = 0; i < 240; i += 17) x.data_ptr<float>()[i] *= 50;
  const auto values = values_of(x);
  for (const char* options : {",scope=block:32", ",scope=sample", "", ",scope=sample,levels=symmetric",
                              ",scope=block:64,rotate=hadamard"}) {
    const std::string spec = std::string("quant:4") + options;
    const size_t group = spec.find("block:32") != std::string::npos   ? 32
                         : spec.find("block:64") != std::string::npos ? 64
                         : spec.find("sample") != std::string::npos   ? 80
                                                                      : 240;
    const size_t row = group == 240 ? 240 : 80;
    const auto got = values_of(received(spec + ",spikes=1", x));
    for (size_t begin = 0; begin < 240; begin += row) {
      for (size_t at = begin; at < begin + row; at += group) {
        const auto end = std::min(at + group, begin + row);
        const auto [least, greatest] = std::minmax_element(values.begin() + static_cast<ptrdiff_t>(at),
                                                           values.begin() + static_cast<ptrdiff_t>(end));
        for (const auto spike : {least, greatest}) {
          const auto place = static_cast<size_t>(spike - values.begin());
          EXPECT_EQ(got[place], values[place]) << spec << " " << place;
        }
      }
    }
    EXPECT_LT(square_error(spec + ",spikes=1", x), square_error(spec, x)) << spec;
  }
}

TEST(Spiked, TheRestIsQuantisedOverItsOwnRange) {
  const at::Tensor x = normal_tensor({1, 40}, 7);
  const auto values = values_of(x);
  const auto least = static_cast<size_t>(std::ranges::min_element(values) - values.begin());
  const auto greatest = static_cast<size_t>(std::ranges::max_element(values) - values.begin());
  std::vector<float> rest;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != least && i != greatest) rest.push_back(values[i]);
  }
  const at::Tensor alone = at::full({1, 38}, 0.0F);
  std::memcpy(alone.data_ptr(), rest.data(), rest.size() * sizeof(float));
  const auto expected = values_of(received("quant:3", alone));
  const auto got = values_of(received("quant:3,spikes=1", x));
  size_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != least && i != greatest) {
      EXPECT_EQ(got[i], expected[next++]) << i;
    }
  }
}

TEST(Spiked, GroupsOfOneAndTwoElementsAreAllSpikes) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 1}, {3, 2}}) {
    const at::Tensor x = normal_tensor(shape, 8);
    EXPECT_TRUE(same_bits(received("quant:1,scope=sample,spikes=1", x), x));
  }
}

TEST(Spiked, PlacesTakeTheBytesThatTheGroupNeeds) {
  EXPECT_EQ(make_codec("quant:4,scope=block:32,spikes=1")->payload_size({{2, 64}}).bound, 4U * (10 + 8 + 16));
  EXPECT_EQ(make_codec("quant:4,scope=sample,spikes=1")->payload_size({{2, 257}}).bound, 2U * (12 + 8 + 129));
  EXPECT_EQ(make_codec("quant:4,spikes=1")->payload_size({{2, 40000}}).bound, 16U + 8 + 40000);
}

TEST(Spiked, DamagedSpikesAreRefused) {
  const auto codec = make_codec("quant:4,spikes=1");
  const at::Tensor x = normal_tensor({1, 9}, 9);
  const auto good = encoded(*codec, x);  // least, its place, greatest, its place, then the rest
  const auto expect_refused = [&](size_t at, auto value) {
    auto payload = good;
    std::memcpy(payload.data() + at, &value, sizeof value);
    EXPECT_THROW(decoded(*codec, payload, meta_of(x)), WireError) << at;
  };
  expect_refused(0, INFINITY);
  expect_refused(0, 100.0F);  // above the greatest
  expect_refused(4, uint8_t{9});
  expect_refused(5, std::nanf(""));
  expect_refused(9, uint8_t{200});
  expect_refused(9, std::to_integer<uint8_t>(good[4]));  // one place for both
}

at::Tensor row_of(const std::vector<float>& values) {
  at::Tensor x = at::full({1, static_cast<int64_t>(values.size())}, 0.0F);
  std::memcpy(x.data_ptr(), values.data(), values.size() * sizeof(float));
  return x;
}

TEST(ShortRanges, EndsAreTheNearestBf16NumbersAroundTheGroup) {
  // Between 1 and 2 bf16 numbers are 1/128 apart.
  const float step = 0x1p-7F;
  const auto got = values_of(received("quant:1,ranges=bf16", row_of({1 + step / 3, 1 + 2.5F * step})));
  EXPECT_EQ(got, (std::vector<float>{1, 1 + 3 * step}));
  const auto below = values_of(received("quant:1,ranges=bf16", row_of({-1 - 2.5F * step, -1 - step / 3})));
  EXPECT_EQ(below, (std::vector<float>{-1 - 3 * step, -1}));
  const auto around = values_of(received("quant:1,ranges=bf16", row_of({-1e-45F, 1e-45F})));
  EXPECT_EQ(around, (std::vector<float>{-0x1p-133F, 0x1p-133F})) << "the least bf16 numbers but 0";
  for (const std::vector<float>& exact : {std::vector<float>{-2, 6}, {0, 0, 0}, {-3, -3}, {0.25F, 0x1p127F}})
    EXPECT_TRUE(same_bits(received("quant:1,ranges=bf16", row_of(exact)), row_of(exact)));
  EXPECT_EQ(values_of(received("quant:2,ranges=bf16", row_of({-0.0F, -1e-45F, -1}))).at(0), 0);
}

TEST(ShortRanges, EverythingArrivesWithinHalfAStepOfTheWiderRange) {
  const at::Tensor x = normal_tensor({3, 200}, 10).add_(0.5);
  for (unsigned bits = 1; bits <= 8; ++bits) {
    const auto values = values_of(x);
    const auto got = values_of(received(fmt::format("quant:{},scope=block:64,ranges=bf16", bits), x));
    for (size_t begin = 0; begin < values.size(); begin = begin % 200 == 192 ? begin + 8 : begin + 64) {
      const size_t end = begin % 200 == 192 ? begin + 8 : begin + 64;
      const auto [least, greatest] = std::minmax_element(values.begin() + static_cast<ptrdiff_t>(begin),
                                                         values.begin() + static_cast<ptrdiff_t>(end));
      const float wider = (*greatest - *least) + 0x1p-7F * (std::abs(*greatest) + std::abs(*least));
      for (size_t i = begin; i < end; ++i)
        EXPECT_LE(std::abs(got[i] - values[i]), wider / static_cast<float>((2U << bits) - 2) * 1.0001F) << bits;
    }
  }
}

TEST(ShortRanges, TakeFourBytesAGroup) {
  EXPECT_EQ(make_codec("quant:2,scope=block:64,ranges=bf16")->payload_size({{2, 128}}).bound, 4U * (4 + 16));
  EXPECT_EQ(make_codec("quant:4,ranges=bf16")->payload_size({{2, 128}}).bound, 4U + 128);
}

TEST(ShortRanges, WhatBf16CannotHoldIsRefused) {
  const auto codec = make_codec("quant:2,ranges=bf16");
  EXPECT_NO_THROW(encoded(*codec, row_of({0, 0x1.fep127F})));
  EXPECT_THROW(encoded(*codec, row_of({0, 0x1.fep127F * 1.001F})), NumericError);
  EXPECT_THROW(encoded(*codec, row_of({-3.4e38F, 0})), NumericError);
  EXPECT_THROW(encoded(*codec, row_of({0, INFINITY})), NumericError);
  for (const uint32_t nan : {0x7fc00000U, 0xffffffffU, 0x7f800001U}) {
    const at::Tensor x = row_of({0, std::bit_cast<float>(nan)});
    EXPECT_THROW(encoded(*codec, x), NumericError);
    EXPECT_THROW(codec->device_encode(x, {}), NumericError);
  }
}

TEST(ShortRanges, DamagedOnesAreRefused) {
  const auto codec = make_codec("quant:2,ranges=bf16");
  const auto good = encoded(*codec, row_of({-1, 1}));
  const auto expect_refused = [&](size_t at, uint16_t end) {
    auto payload = good;
    std::memcpy(payload.data() + at, &end, sizeof end);
    EXPECT_THROW(decoded(*codec, payload, {{1, 2}}), WireError) << at << ' ' << end;
  };
  EXPECT_NO_THROW(decoded(*codec, good, {{1, 2}}));
  expect_refused(0, 0x8000);  // -0
  expect_refused(2, 0x8000);
  expect_refused(0, 0x7f80);  // infinite
  expect_refused(2, 0x7fc0);  // not a number
  expect_refused(2, 0xc000);  // hi below lo
}

TEST(QuantOptions, RefuseWhatTheyCannotBe) {
  for (const char* spec :
       {"quant:4,levels=symmetric,ranges=bf16", "quant:4,ranges=fp16", "quant:1,levels=symmetric",
        "quant:4,levels=other", "quant:4,rotate=yes", "quant:4,spikes=2", "quant:4,scope=rows", "qsgd:1",
        "exponential:9", "fp8:e3m2", "mx:e9m9", "natural:2"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
