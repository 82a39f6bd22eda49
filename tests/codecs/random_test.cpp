// random against its definition (docs/wire_format_field.md, "random"), written out once more, and its
// statistics.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "strait/codecs/sparsifier.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint32_t mixed32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

/// The draw of an element of the batch.
uint32_t draw(const MessageContext& context, uint64_t index) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  uint64_t key = mixed(context.seed + kGolden);
  key = mixed(key ^ (context.boundary + kGolden + (key << 6)));
  key = mixed(key ^ (context.step + kGolden + (key << 6)));
  const uint32_t first = mixed32(static_cast<uint32_t>(index) ^ static_cast<uint32_t>(key));
  const auto high = static_cast<uint32_t>(index >> 32) * 0x9e3779b9;
  return mixed32(first + static_cast<uint32_t>(key >> 32) + high) >> 1;
}

/// Which of n elements from `first` on are kept: the k of the least draws.
std::vector<bool> drawn(const MessageContext& context, size_t first, size_t n, size_t k) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return draw(context, first + i); });
  std::vector<bool> keeps(n);
  for (size_t i = 0; i < k; ++i) keeps[order[i]] = true;
  return keeps;
}

at::Tensor sent(const std::string& spec, const at::Tensor& x, const MessageContext& context = {}) {
  const auto codec = make_codec(spec);
  return decoded(*codec, encoded(*codec, x, context), meta_of(x), context);
}

TEST(Random, KeepsTheElementsOfTheLeastDraws) {
  const MessageContext context{.seed = 5, .boundary = 3, .step = 70, .micro_batch = 2, .first_row = 11};
  for (const auto& shape : std::vector<std::vector<int64_t>>{{3, 40}, {2, 3, 5, 7}, {4, 20000}, {1, 1}}) {
    const at::Tensor x = normal_tensor(shape, 1);
    const auto values = values_of(x);
    const size_t row = meta_of(x).row_size();
    for (const auto& [scope, n] : {std::pair<std::string, size_t>{"sample", row}, {"tensor", values.size()}}) {
      for (const auto& [share, parts] : {std::pair<std::string, size_t>{"0.1", 10}, {"0.5", 2}, {"1", 1}}) {
        const auto got = values_of(sent("random:" + share + ",scope=" + scope, x, context));
        for (size_t begin = 0; begin < values.size(); begin += n) {
          const auto keeps = drawn(context, 11 * row + begin, n, (n + parts - 1) / parts);
          for (size_t i = 0; i < n; ++i) {
            ASSERT_EQ(got[begin + i], keeps[i] ? values[begin + i] : 0) << share << " " << scope << " " << i;
          }
        }
      }
    }
  }
}

std::vector<uint64_t> positions(const MessageContext& context) {
  const at::Tensor x = normal_tensor({4, 50}, 2);
  const auto codec = make_codec("random:0.2");
  std::vector<std::byte> space(codec->payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  MessageContext wanted = context;
  wanted.wants_indices = true;
  const IndexSet at_sender = codec->write(x, wanted, out);
  ByteReader in(space);
  EXPECT_EQ(codec->read(in, meta_of(x), wanted).indices.masks, at_sender.masks);
  return at_sender.masks;
}

TEST(Random, TheEndsAgreeAndSoDoTheDirections) {
  const MessageContext context{.seed = 1, .boundary = 2, .step = 3, .first_row = 4};
  const auto first = positions(context);
  const auto changed = [&](auto change) {
    MessageContext other = context;
    change(other);
    return positions(other);
  };
  EXPECT_EQ(first, changed([](auto& c) { c.direction = Direction::gradient; }));
  EXPECT_EQ(first, changed([](auto& c) { c.micro_batch = 9; }));
  EXPECT_NE(first, changed([](auto& c) { c.seed = 2; }));
  EXPECT_NE(first, changed([](auto& c) { c.boundary = 3; }));
  EXPECT_NE(first, changed([](auto& c) { c.step = 4; }));
  EXPECT_NE(first, changed([](auto& c) { c.first_row = 0; }));
}

TEST(Random, SendsValuesAlone) {
  const MessageMeta meta{{100, 64, 8, 8}};
  const auto bytes = [&](const char* spec) {
    const auto [bound, exact] = make_codec(spec)->payload_size(meta);
    EXPECT_TRUE(exact) << spec;
    return bound;
  };
  EXPECT_EQ(bytes("random:0.1"), 100U * 410 * 4);
  EXPECT_EQ(bytes("random:0.1,scope=tensor,values=fp16"), 40960U * 2);
  EXPECT_EQ(bytes("random:0.1,values=quant:4"), 100U * (8 + 205));
}

constexpr int kSteps = 10000;

TEST(Random, ScaledItIsRightOnAverage) {
  constexpr size_t kElements = 21;
  const at::Tensor x = normal_tensor({1, kElements}, 3);
  const auto values = values_of(x);
  std::vector<double> sum(kElements);
  for (uint64_t step = 0; step < kSteps; ++step) {
    const auto seen = values_of(sent("random:0.25,scale=unbiased", x, {.step = step}));
    for (size_t i = 0; i < kElements; ++i) sum[i] += seen[i];
  }
  const double chance = 6.0 / kElements;
  for (size_t i = 0; i < kElements; ++i) {
    const double error = std::abs(values[i]) * std::sqrt((1 - chance) / chance / kSteps);
    EXPECT_NEAR(sum[i] / kSteps, values[i], 4 * error) << i;
  }
}

/// How often two elements are kept together, one with itself among them, within four standard errors.
TEST(Random, AllPositionsAndPairsAreAsLikely) {
  constexpr size_t kElements = 23;
  constexpr double kKept = 5;
  const at::Tensor x = normal_tensor({1, kElements}, 4).abs_().add_(1);
  std::vector<int> together(kElements * kElements);
  for (uint64_t step = 0; step < kSteps; ++step) {
    const auto seen = values_of(sent("random:0.2", x, {.seed = 8, .step = step}));
    for (size_t i = 0; i < kElements; ++i) {
      for (size_t j = 0; j < kElements; ++j)
        together[i * kElements + j] += seen[i] != 0 && seen[j] != 0 ? 1 : 0;
    }
  }
  for (size_t i = 0; i < kElements; ++i) {
    for (size_t j = 0; j < kElements; ++j) {
      const double chance = kKept / kElements * (i == j ? 1 : (kKept - 1) / (kElements - 1));
      const double error = std::sqrt(kSteps * chance * (1 - chance));
      EXPECT_NEAR(together[i * kElements + j], kSteps * chance, 4 * error) << i << " " << j;
    }
  }
}

TEST(Random, WhatScalingMakesTooLargeIsRefused) {
  const at::Tensor x = normal_tensor({1, 8}, 5).abs_().add_(1).mul_(1e38);
  EXPECT_NO_THROW(sent("random:0.5", x));
  const auto complaint = [](const auto& use) -> std::string {
    try {
      use();
    } catch (const NumericError& error) {
      return error.what();
    }
    return "";
  };
  const std::string expected = "a value is not finite, or past float32 when it is multiplied by n / k";
  EXPECT_EQ(complaint([&] { sent("random:0.125,scale=unbiased", x); }), expected);
  EXPECT_EQ(complaint([&] { make_codec("random:0.125,scale=unbiased")->reconstruct(x, {}); }), expected);
  EXPECT_EQ(values_of(sent("random:1,scale=unbiased", x)), values_of(x)) << "all are kept as they are";
}

TEST(Random, RefusesWhatItDoesNotKnow) {
  for (const char* spec : {"random", "random:0", "random:1.1", "random:0.1,scope=block:8", "random:0.1,scale=2",
                           "random:0.1,index=rice", "random:0.1,values=quant:9"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
