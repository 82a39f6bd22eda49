// The functions of which the CUDA kernels are made, one by one, against the CPU's kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/range_coder.h"
#include "strait/kernels/half.h"
#include "strait/kernels/masked.h"
#include "strait/kernels/pack.h"
#include "strait/kernels/select.h"
#include "tests/cuda/on_host.h"
#include "tests/kernels/numbers.h"

namespace strait::kernels::cuda {
namespace {

/// Floats of all magnitudes and signs: all exponents with mantissas around what is rounded to.
std::vector<float> all_kinds_of_floats() {
  std::vector<float> x;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low :
         {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      x.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  return x;
}

TEST(CudaHalf, NarrowsEveryKindOfFloatAsTheCpuDoes) {
  const auto x = all_kinds_of_floats();
  std::vector<uint16_t> fp16(x.size());
  std::vector<uint16_t> bf16(x.size());
  to_fp16(x, std::as_writable_bytes(std::span(fp16)));
  to_bf16(x, std::as_writable_bytes(std::span(bf16)));
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t magnitude = magnitude_bits(x[i]);
    ASSERT_EQ(is_sendable(x[i], ValueType::fp32), magnitude < kInfinityBits);
    ASSERT_EQ(is_sendable(x[i], ValueType::fp16), magnitude < kFp16OverflowBits);
    ASSERT_EQ(is_sendable(x[i], ValueType::bf16), magnitude < kBf16OverflowBits);
    if (magnitude < kFp16OverflowBits) {
      ASSERT_EQ(value_bits(x[i], ValueType::fp16), fp16[i]) << x[i];
    }
    if (magnitude < kBf16OverflowBits) {
      ASSERT_EQ(value_bits(x[i], ValueType::bf16), bf16[i]) << x[i];
    }
  }
}

TEST(CudaHalf, WidensEveryValueAsTheCpuDoes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const auto bytes = std::as_bytes(std::span(&half, 1));
    float expected = 0;
    ASSERT_EQ(is_received(bits, ValueType::fp16), from_fp16(bytes, {&expected, 1})) << bits;
    if (is_received(bits, ValueType::fp16)) {
      ASSERT_EQ(std::bit_cast<uint32_t>(value_of(bits, ValueType::fp16)), std::bit_cast<uint32_t>(expected));
    }
    ASSERT_EQ(is_received(bits, ValueType::bf16), from_bf16(bytes, {&expected, 1})) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(value_of(bits, ValueType::bf16)), std::bit_cast<uint32_t>(expected));
  }
}

template <unsigned b>
void expect_packed_alike(const std::vector<std::array<uint32_t, kOctet>>& octets) {
  for (const auto& octet : octets) {
    uint32_t codes[kOctet];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < kOctet; ++i) {
      codes[i] = octet[i] & ((1U << b) - 1);
      bytes |= static_cast<uint64_t>(codes[i]) << (8 * i);
    }
    const uint64_t packed = pack_octet(codes, b);
    ASSERT_EQ(packed, pack8<b>(bytes));
    for (uint32_t i = 0; i < kOctet; ++i) ASSERT_EQ(code_at(packed, i, b), codes[i]);
    for (uint32_t count = 1; count < kOctet; ++count) {
      ASSERT_EQ(is_padding_zero(packed, count, b), packed >> (count * b) == 0);
    }
    ASSERT_TRUE(is_padding_zero(packed, kOctet, b));
  }
}

TEST(CudaOctet, IsPackedAsTheCpuPacksIt) {
  std::mt19937 random(1);
  std::vector<std::array<uint32_t, kOctet>> octets(200);
  for (auto& octet : octets) std::ranges::generate(octet, random);
  octets.push_back({});
  octets.back().fill(0xff);
  expect_packed_alike<1>(octets);
  expect_packed_alike<2>(octets);
  expect_packed_alike<3>(octets);
  expect_packed_alike<4>(octets);
  expect_packed_alike<5>(octets);
  expect_packed_alike<6>(octets);
  expect_packed_alike<7>(octets);
  expect_packed_alike<8>(octets);
}

/// As the lanes of a warp do it: lane i has octet i, and word w is put together from two of them.
TEST(CudaOctet, WordsOfAWarpAreItsBytes) {
  std::mt19937_64 random(2);
  constexpr uint32_t kLanes = 32;
  for (const uint32_t bits : {3U, 5U, 6U, 7U}) {
    std::vector<uint64_t> octets(kLanes);
    std::vector<uint8_t> bytes;
    for (uint64_t& octet : octets) {
      octet = random() >> (64 - 8 * bits);
      for (uint32_t i = 0; i < bits; ++i) bytes.push_back(static_cast<uint8_t>(octet >> (8 * i)));
    }
    for (uint32_t word = 0; word < kLanes * bits / 4; ++word) {
      const uint32_t from = 4 * word / bits;
      uint32_t expected = 0;
      std::memcpy(&expected, bytes.data() + 4 * word, 4);
      ASSERT_EQ(word_of(octets[from], octets[(from + 1) % kLanes], 4 * word - from * bits, bits), expected);
    }
  }
}

TEST(CudaRange, IsThatOfTheCpuInAnyOrder) {
  auto x = all_kinds_of_floats();
  std::erase_if(x, [](float value) { return !is_finite(value); });
  x.push_back(-0.0F);
  std::mt19937 random(3);
  std::ranges::shuffle(x, random);
  for (size_t begin = 0; begin + 100 < x.size(); begin += 101) {
    const auto part = std::span(x).subspan(begin, begin % 7 + 1);
    float octet[kOctet];
    std::ranges::copy(part, octet);
    fill_octet(octet, static_cast<uint32_t>(part.size()));
    const RangeCoder::Extent extent = RangeCoder::see(octet);
    RangeCoder::Extent halves = RangeCoder::join({}, extent);
    for (const float value : part) {
      std::ranges::fill(octet, value);
      halves = RangeCoder::join(RangeCoder::see(octet), halves);
    }
    const Range expected = range_of(part);
    for (const auto& seen : {extent, halves}) {
      const Range range = RangeCoder{}.line(seen);
      ASSERT_EQ(std::bit_cast<uint32_t>(range.lo), std::bit_cast<uint32_t>(expected.lo));
      ASSERT_EQ(std::bit_cast<uint32_t>(range.hi), std::bit_cast<uint32_t>(expected.hi));
      ASSERT_EQ(RangeCoder{}.is_sendable(range), is_usable(expected));
    }
  }
}

TEST(CudaRange, PastFloat32WhereItIsAddedIsNotSendable) {
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const Range range :
       {Range{0x1.8p104F, kMost}, Range{0x1p103F, kMost}, Range{-kMost, 0}, Range{-1, kMost}}) {
    EXPECT_EQ(RangeCoder{}.is_sendable(range), is_usable(range)) << range.lo << " " << range.hi;
  }
  EXPECT_FALSE(RangeCoder{}.is_sendable({0x1.8p104F, kMost}));
}

TEST(CudaRange, OfWhatIsNotFiniteIsNotSendable) {
  for (const float bad : {INFINITY, -INFINITY, std::nanf(""), -std::nanf("")}) {
    for (uint32_t place = 0; place < kOctet; ++place) {
      float octet[kOctet] = {1, -2, 3, 0, -0.0F, 5, 1e-42F, 7};
      octet[place] = bad;
      float other[kOctet] = {};
      const auto seen = RangeCoder::join(RangeCoder::see(other), RangeCoder::see(octet));
      ASSERT_FALSE(RangeCoder{}.is_sendable(RangeCoder{}.line(seen))) << bad << " " << place;
    }
  }
}

/// Mantissas of every kind: few bits, all bits, next to those, and any.
std::vector<uint32_t> mantissas(std::mt19937& random) {
  std::vector<uint32_t> all;
  for (uint32_t low = 0; low < 4; ++low) {
    for (const uint32_t high : {0x000000U, 0x2aaaa8U, 0x400000U, 0x555554U, 0x7ffffcU})
      all.push_back(high | low);
  }
  for (int i = 0; i < 40; ++i) all.push_back(random() >> 9);
  return all;
}

TEST(CudaDivision, ByAReciprocalHasTheBitsOfADivision) {
  std::mt19937 random(8);
  int plain = 0;
  for (uint32_t exponent = 1; exponent < 255; exponent += 2) {
    for (const uint32_t mantissa : mantissas(random)) {
      const auto divisor = Divisor::of(std::bit_cast<float>(exponent << 23 | mantissa));
      if (!divisor.is_plain) continue;
      ++plain;
      for (int32_t shift : {-140, -60, -25, -24, -21, -20, -19, -9, -8, -1, 0, 1, 9}) {
        const int32_t of_x = static_cast<int32_t>(exponent) + shift;
        for (const uint32_t bits : mantissas(random)) {
          const auto x = std::bit_cast<float>(of_x <= 0 ? bits >> std::min(-of_x, 22)
                                                        : static_cast<uint32_t>(of_x) << 23 | bits);
          const float expected = x / divisor.by;
          const float quick = divisor.quick(x);
          if (Divisor::is_plain_for(x) || expected >= 0x1p-20F) {
            ASSERT_EQ(std::bit_cast<uint32_t>(quick), std::bit_cast<uint32_t>(expected))
                << x << " / " << divisor.by;
            ASSERT_EQ(divisor.quick(-x), -expected);
          } else {
            ASSERT_TRUE(quick >= 0 && quick < 0x1p-19F) << x << " / " << divisor.by;
          }
        }
      }
    }
  }
  EXPECT_GT(plain, 1000);
}

/// The quotient of mantissas a and b, as integers from 2^23 to 2^24 - 1, is c / (b * 2^e) away from a place
/// halfway between two floats, tie / 2^e with tie odd: c = a * 2^e - b * tie, and e is 24 where a >= b,
/// else 25. What quick() rounds last is off by 3 / 2^(e + 24) at most, so that it can only go wrong where c is
/// at most 3. These are all such pairs.
TEST(CudaDivision, OneCorrectionIsEnoughNextToEveryTie) {
  constexpr uint64_t kLeast = uint64_t{1} << 23;
  uint64_t pairs = 0;
  uint64_t nearly_right = 0;
  for (uint64_t b = kLeast; b < 2 * kLeast; ++b) {
    const uint32_t twos = static_cast<uint32_t>(std::countr_zero(b));
    if (twos > 1) continue;  // then c is a multiple of 4
    const auto odd = static_cast<uint32_t>(b >> twos);
    uint32_t inverse = odd;
    for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
    const auto divisor = Divisor::of(static_cast<float>(b));
    for (const uint32_t e : {24U, 25U}) {
      for (const int32_t c : {-3, -2, -1, 1, 2, 3}) {
        if ((c % 2 == 0) != (twos == 1)) continue;
        const uint64_t modulus = uint64_t{1} << (e - twos);
        const uint32_t first =
            static_cast<uint32_t>(-(c >> twos)) * inverse & static_cast<uint32_t>(modulus - 1);
        for (uint64_t tie = first; tie < 4 * kLeast; tie += modulus) {
          if (tie < 2 * kLeast) continue;
          const uint64_t a = (b * tie + static_cast<uint64_t>(int64_t{c})) >> e;
          if (a < kLeast || a >= 2 * kLeast || (e == 24) != (a >= b)) continue;
          const auto x = static_cast<float>(a);
          ASSERT_EQ(divisor.quick(x), x / divisor.by) << a << " / " << b;
          ++pairs;
          nearly_right += x * divisor.reciprocal == x / divisor.by ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(pairs, 10'000'000U);
  EXPECT_LT(nearly_right, pairs * 6 / 10) << "these pairs need no correction";
}

TEST(CudaDivision, OfWholeNumbersRoundsDown) {
  std::mt19937 random(9);
  std::vector<uint32_t> numbers = {0, 1, 2, 3, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};
  for (int i = 0; i < 300; ++i) numbers.push_back(random() >> (random() % 32));
  for (uint32_t by = 1; by < 300; ++by) numbers.push_back(by);
  for (const uint32_t by : numbers) {
    if (by == 0) continue;
    const WholeDivision division(by);
    for (const uint32_t n : numbers) {
      for (const uint32_t near : {n, n / by * by, n / by * by - 1})
        ASSERT_EQ(division.of(near), near / by) << by;
    }
  }
}

TEST(CudaPlaces, AreThoseOfTheLayout) {
  for (const Layout& layout : {Layout{1, 1000, 64}, Layout{3, 100, 100}, Layout{5, 75, 16}, Layout{7, 64, 8},
                               Layout{2, 3, 3}, Layout{5, 64, 16}, Layout{4, 83, 16}}) {
    const Places places(layout);
    ASSERT_EQ(places.groups(), layout.groups());
    uint32_t group = 0;
    uint64_t octet = 0;
    const uint32_t bits = 3;
    for (uint64_t row = 0; row < layout.rows; ++row) {
      for (uint64_t begin = 0; begin < layout.row_size; begin += layout.group_size, ++group) {
        const Place place = places.group(group, bits);
        ASSERT_EQ(place.begin, row * layout.row_size + begin);
        ASSERT_EQ(place.size, std::min(layout.group_size, layout.row_size - begin));
        ASSERT_EQ(place.code_byte, row * ((layout.row_size * bits + 7) / 8) + begin * bits / 8);
        for (uint64_t before = 0; before < place.size; before += kOctet, ++octet) {
          const auto here = places.octet(octet, bits);
          ASSERT_EQ(here.begin, place.begin + before);
          ASSERT_EQ(here.count, std::min<uint64_t>(kOctet, layout.row_size - begin - before));
          ASSERT_EQ(here.group, group);
          ASSERT_EQ(here.code_byte, place.code_byte + before / 8 * bits);
        }
      }
    }
    ASSERT_EQ(places.octet(octet, bits).count, 0U);
    ASSERT_EQ(places.octet(octet + (uint64_t{1} << 32), bits).count, 0U);
  }
  EXPECT_FALSE(Places::fits({1, uint64_t{1} << 35, 64}));
  EXPECT_TRUE(Places::fits({1, (uint64_t{1} << 35) - 8, 64}));
}

/// Elements halfway between two codes, next to that, and around both ends.
TEST(CudaRange, CodesNearTiesAreTheCpus) {
  for (const Range range :
       {Range{-1, 2}, Range{0.1F, 0.7F}, Range{0, 1e-40F}, Range{0, 1e-30F}, Range{-1.5e38F, 1.5e38F}}) {
    for (uint32_t bits = 1; bits <= 8; ++bits) {
      const auto levels = static_cast<float>((1U << bits) - 1);
      std::vector<float> x;
      for (float half = 0; half <= 2 * levels; half += 1) {
        const float tie = range.lo + half / (2 * levels) * (range.hi - range.lo);
        for (const float value : {std::nextafter(tie, -1e38F), tie, std::nextafter(tie, 1e38F)}) {
          x.push_back(std::clamp(value, range.lo, range.hi));
        }
      }
      for (const bool stochastic : {false, true}) {
        // The index passes 2^32 on the way.
        const auto coder = RangeCoder::of(bits, {stochastic, {7, 8, (uint64_t{1} << 32) - x.size() / 2}});
        std::vector<std::byte> expected(packed_size(x.size(), bits));
        if (stochastic) {
          quantise_stochastic(x, range, bits, coder.rounding.dither, expected);
        } else {
          quantise(x, range, bits, expected);
        }
        std::vector<float> received(x.size());
        dequantise(expected, range, bits, received);
        float octet[kOctet];
        uint32_t codes[kOctet];
        for (size_t i = 0; i < x.size(); ++i) {
          if (i % kOctet == 0) {
            const auto count = std::min<size_t>(kOctet, x.size() - i);
            std::ranges::copy(std::span(x).subspan(i, count), octet);
            fill_octet(octet, static_cast<uint32_t>(count));
            code_octet(coder, octet, range, RangeCoder::divisor(range), i, codes);
          }
          uint32_t window = std::to_integer<uint32_t>(expected[i * bits / 8]);
          if (i * bits / 8 + 1 < expected.size()) {
            window |= std::to_integer<uint32_t>(expected[i * bits / 8 + 1]) << 8;
          }
          const uint32_t code = window >> (i * bits % 8) & ((1U << bits) - 1);
          ASSERT_EQ(codes[i % kOctet], code) << bits << " " << x[i];
          ASSERT_EQ(coder.value(code, range), received[i]);
        }
      }
    }
  }
}

std::vector<std::vector<float>> selections() {
  std::vector<std::vector<float>> inputs;
  for (const size_t size : kSizes) inputs.push_back(numbers(size, 50));
  auto relu = numbers(5000, 51);
  for (float& value : relu) value = std::max(value, 0.0F);
  inputs.push_back(relu);
  auto ties = numbers(5000, 52);
  for (float& value : ties) value = std::round(2 * value) / 2;
  inputs.push_back(ties);
  inputs.emplace_back(777, -1.25F);
  inputs.emplace_back(300, -0.0F);
  auto tiny = numbers(1000, 53);
  for (float& value : tiny) value *= 1e-42F;
  inputs.push_back(tiny);
  auto last_bits = numbers(2000, 54);
  for (size_t i = 0; i < last_bits.size(); ++i) {
    last_bits[i] = std::bit_cast<float>(0x3f800000U + static_cast<uint32_t>(i * 7 % 13));
  }
  inputs.push_back(last_bits);
  auto all_bits = numbers(3000, 55);
  std::mt19937 random(4);
  for (float& value : all_bits)
    value = std::bit_cast<float>(static_cast<uint32_t>(random()));  // NaN among them
  inputs.push_back(all_bits);
  return inputs;
}

/// The mask of a bitmap.
std::vector<uint64_t> mask_of(std::span<const uint8_t> bitmap, size_t n) {
  std::vector<uint64_t> mask(mask_words(n));
  std::memcpy(mask.data(), bitmap.data(), bitmap.size());
  return mask;
}

TEST(CudaSelect, KeepsWhatTheCpuKeeps) {
  SelectScratch scratch;
  for (const auto& x : selections()) {
    for (const double share : {0.001, 0.1, 0.5, 0.9, 1.0}) {
      const size_t k = std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(x.size())));
      std::vector<uint64_t> mask(mask_words(x.size()));
      const auto expected = select_largest(x, k, scratch, mask);
      std::vector<float> terms(x.size());
      std::vector<uint8_t> bitmap((x.size() + 7) / 8);
      std::vector<float> values(k);
      on_host::write_largest(x, {}, terms, k, ValueType::fp32, bitmap, values.data());
      ASSERT_EQ(mask_of(bitmap, x.size()), mask) << x.size() << " " << k;
      ASSERT_EQ(std::memcmp(values.data(), expected.data(), k * sizeof(float)), 0) << x.size() << " " << k;
    }
  }
}

TEST(CudaSelect, DigitsOfABracketMakeItsMagnitudes) {
  for (const auto& [low, high] : {std::pair(0U, 0x7fffffffU), std::pair(5U, 5U), std::pair(100U, 2147U),
                                  std::pair(100U, 2148U), std::pair(0x3f800000U, 0x3f8fffffU)}) {
    const Digits digits = Digits::between(low, high);
    for (const uint32_t magnitude : {low, low + (high - low) / 3, high}) {
      Threshold threshold{low, 1};
      for (uint32_t digit = 0; digit < kDigits && digits.has(digit); ++digit) {
        EXPECT_TRUE(threshold.is_candidate(magnitude, digits, digit)) << low << " " << magnitude;
        const uint32_t value = digits.value(magnitude, digit);
        EXPECT_LT(value, digits.values(digit));
        EXPECT_LE(digits.values(digit), kMostBins);
        threshold = threshold.behind(digits, digit, value, 0);
      }
      EXPECT_EQ(threshold.magnitude, magnitude) << low << " to " << high;
    }
    if (digits.has(1)) {
      const Threshold of_low = Threshold{low, 1}.behind(digits, 0, 0, 0);
      EXPECT_FALSE(of_low.is_candidate(high, digits, 1)) << low << " to " << high;
    }
  }
}

TEST(CudaSelect, CountsOfPartsAddUp) {
  const Counts sum{Counts::of(5, 7).packed + Counts::of(0x7ffffff0, 9).packed};
  EXPECT_EQ(sum.above(), 0x7ffffff5U);
  EXPECT_EQ(sum.equal(), 16U);
  EXPECT_EQ(sum.packed >> 62, 0U);
  EXPECT_EQ(Counts::of(3, 5).kept(2), 5U);
  EXPECT_EQ(Counts::of(3, 1).kept(2), 4U);
}

}  // namespace
}  // namespace strait::kernels::cuda
