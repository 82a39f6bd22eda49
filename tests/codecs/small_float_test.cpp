// Small floating-point formats: the published numbers of OCP Microscaling Formats 1.0 (section 5.3) and 8-bit
// Floating Point 1.0, and rounding against all numbers of the format.

#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

struct Number {
  float value;
  unsigned code;
};

struct Format {
  std::string name;
  unsigned bits;
  std::vector<Number> numbers;  ///< least and greatest subnormal, least normal, greatest; 1
};

const std::vector<Format> kFormats = {
    {"e4m3", 8, {{0x1p-9F, 0x01}, {0x1.cp-7F, 0x07}, {0x1p-6F, 0x08}, {448, 0x7e}, {1, 0x38}}},
    {"e5m2", 8, {{0x1p-16F, 0x01}, {0x1.8p-15F, 0x03}, {0x1p-14F, 0x04}, {57344, 0x7b}, {1, 0x3c}}},
    {"e3m2", 6, {{0.0625F, 0x01}, {0.1875F, 0x03}, {0.25F, 0x04}, {28, 0x1f}, {1, 0x0c}}},
    {"e2m3", 6, {{0.125F, 0x01}, {0.875F, 0x07}, {1, 0x08}, {7.5F, 0x1f}, {2, 0x10}}},
    {"e2m1", 4, {{0.5F, 0x1}, {0.5F, 0x1}, {1, 0x2}, {6, 0x7}, {1.5F, 0x3}}},
    {"int8", 8, {{0x1p-6F, 0x01}, {0.5F, 0x20}, {1, 0x40}, {1.984375F, 0x7f}, {-1.984375F, 0x81}}}};

/// The code of element i of a payload of one block of 32 behind one byte.
unsigned code_at(std::span<const std::byte> payload, unsigned bits, size_t i) {
  unsigned code = 0;
  for (unsigned bit = 0; bit < bits; ++bit) {
    const size_t place = i * bits + bit;
    code |= (std::to_integer<unsigned>(payload[1 + place / 8]) >> (place % 8) & 1) << bit;
  }
  return code;
}

TEST(Microscaling, PublishedNumbersHaveTheirCodesAndArriveExactly) {
  for (const Format& format : kFormats) {
    const auto codec = make_codec("mx:" + format.name);
    for (const int exponent : {0, -20, 31}) {  // of the block's scale
      at::Tensor x = at::zeros({1, 32});
      for (size_t i = 0; i < format.numbers.size(); ++i) {
        x.data_ptr<float>()[i] = std::ldexp(format.numbers[i].value, exponent);
        x.data_ptr<float>()[i + 8] = -x.data_ptr<float>()[i];
      }
      const auto payload = encoded(*codec, x);
      ASSERT_EQ(payload.size(), 1 + 4 * format.bits);
      EXPECT_EQ(std::to_integer<int>(payload[0]), 127 + exponent) << format.name;
      for (size_t i = 0; i < format.numbers.size(); ++i) {
        const unsigned code = format.numbers[i].code;
        EXPECT_EQ(code_at(payload, format.bits, i), code) << format.name << " " << format.numbers[i].value;
        const unsigned negative = format.name == "int8" ? 256 - code : code | 1U << (format.bits - 1);
        EXPECT_EQ(code_at(payload, format.bits, i + 8), negative)
            << format.name << " -" << format.numbers[i].value;
      }
      EXPECT_TRUE(at::equal(decoded(*codec, payload, meta_of(x)), x)) << format.name;
    }
  }
}

/// All finite numbers that the codec's codes stand for with the scale 1, in ascending order with their codes.
std::vector<Number> all_numbers(const Format& format) {
  std::vector<Number> numbers;
  const auto codec = make_codec("mx:" + format.name);
  for (unsigned code = 0; code < 1U << format.bits; ++code) {
    std::vector<std::byte> payload = {std::byte{127}, std::byte(code)};
    try {
      const float value = values_of(decoded(*codec, payload, {{1, 1}}))[0];
      if (value != 0 || code == 0) numbers.push_back({value, code});
    } catch (const WireError&) {
    }
  }
  std::ranges::sort(numbers, {}, &Number::value);
  return numbers;
}

TEST(Microscaling, IsTheNearestNumberOfTheFormatAndOfTwoTheEvenOne) {
  for (const Format& format : kFormats) {
    const auto numbers = all_numbers(format);
    ASSERT_GE(numbers.size(), (size_t{1} << format.bits) - 9) << format.name;
    const auto codec = make_codec("mx:" + format.name);
    const float largest = numbers.back().value;
    at::Tensor x = normal_tensor({64, 32}, 7).mul_(largest / 3).clamp_(-largest, largest);
    x.select(1, 0).fill_(largest);
    for (int64_t row = 0; row < 32; ++row) {  // halfway
      const size_t i = static_cast<size_t>(row) * 5 % (numbers.size() - 1);
      x.data_ptr<float>()[row * 32 + 5] = (numbers[i].value + numbers[i + 1].value) / 2;
    }
    const auto values = values_of(x);
    const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
    for (size_t i = 0; i < values.size(); ++i) {
      const Number* best = numbers.data();
      for (const Number& number : numbers) {
        const float distance = std::abs(number.value - values[i]);
        const float least = std::abs(best->value - values[i]);
        if (distance < least || (distance == least && number.code % 2 == 0)) best = &number;
      }
      EXPECT_EQ(got[i], best->value) << format.name << " " << values[i];
    }
  }
}

TEST(Microscaling, ScalesArePowersOfTwoOfBlocksAlongTheLastDimension) {
  at::Tensor x = normal_tensor({2, 3, 40}, 8);
  x.narrow(2, 32, 8).mul_(0x1p-30);  // a block of its own, which loses nothing beside the large one
  const auto codec = make_codec("mx:int8");
  EXPECT_EQ(codec->payload_size(meta_of(x)).bound, 2U * 3 * (2 + 40));
  const at::Tensor error = decoded(*codec, encoded(*codec, x), meta_of(x)).sub(x).abs();
  EXPECT_LE(error.narrow(2, 32, 8).max().item<double>(), 8 * 0x1p-30 / 64);
  EXPECT_THROW(decoded(*codec, std::vector<std::byte>(2, std::byte{0xff}), {{1, 1}}), WireError);
  EXPECT_THROW(decoded(*codec, std::vector<std::byte>{std::byte{127}, std::byte{0x80}}, {{1, 1}}), WireError);
}

TEST(Fp8, BlocksOf128AreScaledToTheLargestNumber) {
  for (const auto& [name, largest, step] : {std::tuple{"e4m3", 448.0, 16.0}, {"e5m2", 57344.0, 8.0}}) {
    const at::Tensor x = normal_tensor({3, 200}, 9);
    const auto codec = make_codec(std::string("fp8:") + name);
    EXPECT_EQ(codec->payload_size(meta_of(x)).bound, 3U * (2 * 4 + 200));
    const auto payload = encoded(*codec, x);
    const auto values = values_of(x);
    const auto got = values_of(decoded(*codec, payload, meta_of(x)));
    for (size_t group = 0; group < 6; ++group) {
      const size_t begin = group / 2 * 200 + group % 2 * 128;
      const size_t count = group % 2 == 0 ? 128 : 72;
      double most = 0;
      for (size_t i = begin; i < begin + count; ++i)
        most = std::max(most, std::abs(static_cast<double>(values[i])));
      float scale = 0;
      std::memcpy(&scale, payload.data() + group * sizeof scale, sizeof scale);
      EXPECT_NEAR(scale, most / largest, most / largest * 1e-6);
      for (size_t i = begin; i < begin + count; ++i) {
        // Half a step of the mantissa, or of the subnormal numbers.
        EXPECT_LE(std::abs(got[i] - values[i]), std::max(std::abs(values[i]) / step, scale * 0x1p-10)) << name;
        if (std::abs(values[i]) == most) {
          EXPECT_NEAR(got[i], values[i], most * 1e-6);
        }
      }
    }
  }
}

}  // namespace
}  // namespace strait
