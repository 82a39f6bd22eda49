#include "strait/kernels/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "strait/kernels/copy.h"

namespace strait::kernels {
namespace {

using Narrow = uint32_t (*)(std::span<const float>, std::span<std::byte>);
using Widen = bool (*)(std::span<const std::byte>, std::span<float>);

/// A 16-bit format by its definition: value = (-1)^s * 2^(e - bias) * 1.m, denormal where e = 0.
struct Format {
  Narrow narrow;
  Widen widen;
  int mantissa_bits;
  int bias;
  uint32_t infinity;
  uint32_t overflow;

  double value(uint32_t half) const {
    const uint32_t magnitude = half & 0x7fff;
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double fraction = std::ldexp(magnitude & ((1U << mantissa_bits) - 1), -mantissa_bits);
    const double value =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return (half & 0x8000) != 0 ? -value : value;
  }

  uint32_t bits_of(float x) const {
    uint16_t half = 0;
    narrow({&x, 1}, std::as_writable_bytes(std::span(&half, 1)));
    return half;
  }
};

const Format kFormats[] = {{to_fp16, from_fp16, 10, 15, 0x7c00, kFp16OverflowBits},
                           {to_bf16, from_bf16, 7, 127, 0x7f80, kBf16OverflowBits}};

TEST(Half, EveryFiniteValueWidensToItsDefinitionAndComesBack) {
  for (const Format& format : kFormats) {
    for (uint32_t half = 0; half < 0x10000; ++half) {
      const auto bits = static_cast<uint16_t>(half);
      float x = 0;
      const bool finite = format.widen(std::as_bytes(std::span(&bits, 1)), {&x, 1});
      ASSERT_EQ(finite, (half & 0x7fff) < format.infinity) << half;
      if (!finite) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(x), std::bit_cast<uint32_t>(static_cast<float>(format.value(half))));
      ASSERT_EQ(format.bits_of(x), half);
    }
  }
}

TEST(Half, RoundsToTheNearerNeighbourAndTiesToEven) {
  for (const Format& format : kFormats) {
    for (uint32_t half = 0; half + 1 < format.infinity; ++half) {
      const auto middle = static_cast<float>((format.value(half) + format.value(half + 1)) / 2);
      const uint32_t even = half % 2 == 0 ? half : half + 1;
      ASSERT_EQ(format.bits_of(middle), even) << middle;
      ASSERT_EQ(format.bits_of(-middle), even | 0x8000) << middle;
      ASSERT_EQ(format.bits_of(std::nextafter(middle, 0.0F)), half) << middle;
      ASSERT_EQ(format.bits_of(std::nextafter(middle, 1e30F)), middle < 1e30F ? half + 1 : half) << middle;
    }
  }
}

TEST(Half, OverflowIsTheLeastMagnitudeThatRoundsToInfinity) {
  for (const Format& format : kFormats) {
    EXPECT_EQ(format.bits_of(std::bit_cast<float>(format.overflow)), format.infinity);
    EXPECT_EQ(format.bits_of(std::bit_cast<float>(format.overflow - 1)), format.infinity - 1);
  }
}

TEST(Half, ReportsTheLargestMagnitudeWhereverItStands) {
  for (const Format& format : kFormats) {
    for (const float extreme : {-3.0F, 65520.0F, std::numeric_limits<float>::infinity(), NAN, -NAN}) {
      for (const size_t position : {0U, 1023U, 1024U, 2999U}) {
        std::vector<float> x(3000, 0.25F);
        x[position] = extreme;
        std::vector<std::byte> out(x.size() * 2);
        EXPECT_EQ(format.narrow(x, out), std::bit_cast<uint32_t>(extreme) & 0x7fffffff);
      }
    }
  }
}

TEST(Copy, FindsWhatIsNotFiniteInBothDirections) {
  for (const size_t position : {0U, 2047U, 2048U, 4999U}) {
    std::vector<float> x(5000, -1.5F);
    std::vector<std::byte> bytes(x.size() * sizeof(float) + 1);
    const auto odd = std::span(bytes).subspan(1);
    EXPECT_TRUE(copy_finite(x, odd));
    std::vector<float> back(x.size());
    EXPECT_TRUE(copy_finite(std::span<const std::byte>(odd), back));
    EXPECT_EQ(back, x);
    x[position] = -std::numeric_limits<float>::infinity();
    EXPECT_FALSE(copy_finite(x, odd));
    EXPECT_FALSE(copy_finite(std::span<const std::byte>(odd), back));
  }
}

}  // namespace
}  // namespace strait::kernels
