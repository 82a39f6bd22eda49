#include "strait/base/bits.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "strait/kernels/pack.h"

namespace strait {
namespace {

/// The stream as text, one character a bit, in stream order.
std::string text_of(std::span<const std::byte> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    text += (std::to_integer<unsigned>(bytes[i / 8]) >> (i % 8) & 1) != 0 ? '1' : '0';
  }
  return text;
}

TEST(Bits, WriterAppendsLeastSignificantBitFirst) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> space(400);
    BitWriter writer(space);
    std::string expected;
    for (int i = 0; i < 40; ++i) {
      const auto count = static_cast<unsigned>(random() % 57);
      const uint64_t value = random() & ((uint64_t{1} << count) - 1);
      writer.put(value, count);
      for (unsigned bit = 0; bit < count; ++bit) expected += (value >> bit & 1) != 0 ? '1' : '0';
    }
    const size_t zeros = random() % 300;
    writer.put_zeros(zeros);
    expected.append(zeros, '0');
    writer.finish();
    expected.resize((expected.size() + 7) / 8 * 8, '0');
    ASSERT_FALSE(writer.full());
    EXPECT_EQ(text_of(std::span(space).first(writer.size())), expected);
  }
}

TEST(Bits, WriterTellsWhenItRanOverItsSpace) {
  for (size_t room = 0; room < 20; ++room) {
    for (size_t bits = 0; bits <= 160; ++bits) {
      std::vector<std::byte> space(room);
      BitWriter writer(space);
      for (size_t i = 0; i < bits; ++i) writer.put(1, 1);
      writer.finish();
      EXPECT_EQ(writer.full(), bits > room * 8) << room << " bytes, " << bits << " bits";
      if (!writer.full()) {
        EXPECT_EQ(writer.size(), (bits + 7) / 8);
      }
    }
  }
}

TEST(Bits, ReaderReadsZerosBehindTheEnd) {
  const std::vector<std::byte> bytes(3, std::byte{0xff});
  BitReader reader(bytes);
  reader.skip(20);
  EXPECT_EQ(reader.peek(), 0xfU);
  reader.skip(4);
  EXPECT_EQ(reader.peek(), 0U);
  reader.skip(100);
  EXPECT_EQ(reader.peek(), 0U);
  EXPECT_EQ(reader.position(), 124U);
}

template <unsigned b>
void expect_packs() {
  std::mt19937_64 random(b);
  for (int round = 0; round < 1000; ++round) {
    uint64_t codes = 0;
    uint64_t packed = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const uint64_t code = random() % (1U << b);
      codes |= code << (8 * i);
      packed |= code << (b * i);
    }
    ASSERT_EQ(kernels::pack8<b>(codes), packed);
    const uint64_t noise = b < 8 ? random() << (8 * b % 64) : 0;
    ASSERT_EQ(kernels::unpack8<b>(packed | noise), codes);
  }
}

TEST(Bits, EightCodesPackAndUnpack) {
  expect_packs<1>();
  expect_packs<2>();
  expect_packs<3>();
  expect_packs<4>();
  expect_packs<5>();
  expect_packs<6>();
  expect_packs<7>();
  expect_packs<8>();
}

}  // namespace
}  // namespace strait
