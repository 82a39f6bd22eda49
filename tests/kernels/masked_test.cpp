#include "strait/kernels/masked.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace strait::kernels {
namespace {

struct Input {
  std::vector<float> out;
  std::vector<uint64_t> mask;
  std::vector<size_t> positions;
  std::vector<float> values;  ///< one per position
};

Input make(size_t n, double share) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::normal_distribution<float> normal;
  std::bernoulli_distribution masked(share);
  Input input;
  input.mask.resize(mask_words(n));
  for (size_t i = 0; i < n; ++i) {
    input.out.push_back(normal(random));
    if (!masked(random)) continue;
    input.mask[i / 64] |= uint64_t{1} << i % 64;
    input.positions.push_back(i);
    input.values.push_back(normal(random));
  }
  return input;
}

TEST(Masked, MovingAddsAndKeepsWhatWasThere) {
  for (const size_t n : {1U, 64U, 65U, 1000U, 4097U}) {
    for (const double share : {0.0, 0.1, 0.6, 1.0}) {
      const Input input = make(n, share);
      auto expected = input.out;
      std::vector<float> before;
      for (size_t i = 0; i < input.positions.size(); ++i) {
        before.push_back(expected[input.positions[i]]);
        expected[input.positions[i]] += input.values[i];
      }
      auto added = input.out;
      add_masked(input.values, input.mask, added);
      EXPECT_EQ(added, expected) << n << " " << share;
      auto moved = input.out;
      std::vector<float> kept(before.size());
      EXPECT_TRUE(move_masked(input.values, input.mask, moved, kept)) << n << " " << share;
      EXPECT_EQ(moved, expected) << n << " " << share;
      EXPECT_EQ(kept, before) << n << " " << share;
      put_masked(kept, input.mask, moved);
      EXPECT_EQ(moved, input.out) << n << " " << share;
    }
  }
}

TEST(Masked, MovingSaysWhetherEverySumIsFinite) {
  Input input = make(700, 0.5);
  std::vector<float> before(input.values.size());
  for (const size_t place : {size_t{0}, input.positions.size() / 2, input.positions.size() - 1}) {
    auto out = input.out;
    auto values = input.values;
    out[input.positions[place]] = std::numeric_limits<float>::max();
    values[place] = std::numeric_limits<float>::max();
    EXPECT_FALSE(move_masked(values, input.mask, out, before)) << place;
    EXPECT_EQ(before[place], std::numeric_limits<float>::max());
  }
}

}  // namespace
}  // namespace strait::kernels
