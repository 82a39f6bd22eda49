// The functions of which the CUDA kernels are made, one by one, against the CPU's kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/on_host.h"
#include "strait/kernels/cuda/range_coder.h"
#include "strait/kernels/half.h"
#include "strait/kernels/masked.h"
#include "strait/kernels/pack.h"
#include "strait/kernels/select.h"
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
    RangeCoder::Extent extent;
    for (const float value : part) extent = RangeCoder::see(extent, value);
    RangeCoder::Extent halves = RangeCoder::join({}, RangeCoder::see({}, part.back()));
    for (const float value : part) halves = RangeCoder::join(RangeCoder::see({}, value), halves);
    const Range expected = range_of(part);
    for (const auto& seen : {extent, halves}) {
      const Range range = RangeCoder{}.line(seen);
      ASSERT_EQ(std::bit_cast<uint32_t>(range.lo), std::bit_cast<uint32_t>(expected.lo));
      ASSERT_EQ(std::bit_cast<uint32_t>(range.hi), std::bit_cast<uint32_t>(expected.hi));
      ASSERT_EQ(RangeCoder{}.is_sendable(range), is_usable(expected));
    }
  }
}

/// Elements halfway between two codes, next to that, and around both ends.
TEST(CudaRange, CodesNearTiesAreTheCpus) {
  for (const Range range : {Range{-1, 2}, Range{0.1F, 0.7F}, Range{0, 1e-40F}, Range{-1.5e38F, 1.5e38F}}) {
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
        const RangeCoder coder{bits, {stochastic, {7, 8, (uint64_t{1} << 32) - x.size() / 2}}};
        std::vector<std::byte> expected(packed_size(x.size(), bits));
        if (stochastic) {
          quantise_stochastic(x, range, bits, coder.rounding.dither, expected);
        } else {
          quantise(x, range, bits, expected);
        }
        std::vector<float> received(x.size());
        dequantise(expected, range, bits, received);
        for (size_t i = 0; i < x.size(); ++i) {
          uint32_t window = std::to_integer<uint32_t>(expected[i * bits / 8]);
          if (i * bits / 8 + 1 < expected.size()) {
            window |= std::to_integer<uint32_t>(expected[i * bits / 8 + 1]) << 8;
          }
          const uint32_t code = window >> (i * bits % 8) & ((1U << bits) - 1);
          ASSERT_EQ(coder.code(x[i], range, i), code) << bits << " " << x[i];
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

TEST(CudaSelect, CountsOfPartsAddUp) {
  const Counts sum{Counts::of(5, 7).packed + Counts::of(0x7ffffff0, 9).packed};
  EXPECT_EQ(sum.above(), 0x7ffffff5U);
  EXPECT_EQ(sum.equal(), 16U);
  EXPECT_EQ(sum.packed >> 62, 0U);
  EXPECT_EQ(Counts::of(3, 5).kept(2), 5U);
  EXPECT_EQ(Counts::of(3, 1).kept(2), 4U);
}

TEST(CudaLayout, FoldedRowsHaveTheSamePlaces) {
  for (const Layout layout : {Layout{5, 64, 16}, Layout{3, 24, 24}, Layout{4, 83, 16}, Layout{2, 20, 20}}) {
    const Layout folded = layout.folded();
    ASSERT_EQ(folded.groups(), layout.groups());
    uint64_t elements = 0;
    for (uint64_t i = 0; i < layout.groups(); ++i) {
      const Place place = folded.place(i, 3);
      ASSERT_EQ(place.begin, elements);
      ASSERT_EQ(place.begin, layout.place(i, 3).begin);
      ASSERT_EQ(place.size, layout.place(i, 3).size);
      ASSERT_EQ(place.code_byte, layout.place(i, 3).code_byte);
      elements += place.size;
    }
    ASSERT_EQ(elements, layout.elements());
  }
}

}  // namespace
}  // namespace strait::kernels::cuda
