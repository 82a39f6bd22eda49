#include "strait/kernels/interlaced.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "strait/kernels/index_code.h"
#include "strait/kernels/masked.h"

namespace strait::kernels {
namespace {

using Picture = std::vector<bool>;
using Mask = std::vector<uint64_t>;

/// One for all tests, so that every shape comes after another.
InterlaceScratch& scratch() {
  static InterlaceScratch instance;
  return instance;
}

Mask mask_of(const Picture& picture) {
  Mask mask(mask_words(picture.size()));
  for (size_t i = 0; i < picture.size(); ++i) mask[i / 64] |= uint64_t{picture[i]} << i % 64;
  return mask;
}

size_t count(const Picture& picture) { return static_cast<size_t>(std::ranges::count(picture, true)); }

/// k positions, the first of an order that `spots` makes alike for neighbours.
Picture random_picture(size_t n, size_t k, size_t width, bool spots, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint64_t> height(n);
  for (auto& h : height) h = random();
  for (int round = 0; spots && round < 3; ++round) {
    auto sum = height;
    for (size_t i = 0; i < n; ++i) {
      for (const size_t step : {size_t{1}, width}) {
        if (i >= step) sum[i] += height[i - step];
        if (i + step < n) sum[i] += height[i + step];
      }
    }
    height = sum;
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return height[a] > height[b]; });
  Picture picture(n);
  for (size_t i = 0; i < k; ++i) picture[order[i]] = true;
  return picture;
}

std::string number_text(uint64_t value, unsigned bits) {
  std::string text;
  for (unsigned bit = 0; bit < bits; ++bit) text += (value >> bit & 1) != 0 ? '1' : '0';
  return text;
}

/// The set of one class, by docs/wire_format.md.
std::string class_text(const Picture& set) {
  const size_t n = set.size();
  const size_t k = count(set);
  std::string text = number_text(k, static_cast<unsigned>(std::bit_width(n)));
  const size_t rare = std::min(k, n - k);
  if (rare == 0) return text;
  if (8 * rare >= 3 * n) {
    for (const bool bit : set) text += bit ? '1' : '0';
    return text;
  }
  const unsigned r = rice_parameter(n, rare);
  uint64_t gap = 0;
  for (const bool bit : set) {
    if (bit == (k <= n - k)) {
      text += std::string(gap >> r, '0') + '1' + number_text(gap, r);
      gap = 0;
    } else {
      ++gap;
    }
  }
  return text;
}

std::string interlaced_text(const Picture& set, size_t width, size_t level = 0) {
  if (level == kInterlaceLevels) return class_text(set);
  const size_t n = set.size();
  const auto is_even = [&](size_t i) { return i / width % 2 == 0 && i % width % 2 == 0; };
  const auto is_corner = [&](size_t i) { return i / width % 2 == 1 && i % width % 2 == 1; };
  Picture coarse;
  Picture known(n);
  for (size_t i = 0; i < n; ++i) {
    if (!is_even(i)) continue;
    coarse.push_back(set[i]);
    known[i] = set[i];
  }
  std::string text = interlaced_text(coarse, (width + 1) / 2, level + 1);
  const auto w = static_cast<int64_t>(width);
  for (const bool corners : {true, false}) {
    const auto away =
        corners ? std::array<int64_t, 4>{-w - 1, -w + 1, w - 1, w + 1} : std::array<int64_t, 4>{-w, -1, 1, w};
    std::array<Picture, 5> classes;
    Picture now = known;
    for (size_t i = 0; i < n; ++i) {
      if (is_even(i) || is_corner(i) != corners) continue;
      size_t masked = 0;
      for (const int64_t step : away) {
        const int64_t j = static_cast<int64_t>(i) + step;
        if (j >= 0 && j < static_cast<int64_t>(n) && known[static_cast<size_t>(j)]) ++masked;
      }
      classes[masked].push_back(set[i]);
      now[i] = set[i];
    }
    for (const auto& members : classes) text += class_text(members);
    known = now;
  }
  return text;
}

std::vector<std::byte> bytes_of(std::string text) {
  text.resize((text.size() + 7) / 8 * 8, '0');
  std::vector<std::byte> bytes(text.size() / 8);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '1') bytes[i / 8] |= static_cast<std::byte>(1U << (i % 8));
  }
  return bytes;
}

std::vector<std::byte> coded(const Picture& picture, size_t width) {
  std::vector<std::byte> out(interlaced_bound(picture.size()));
  const auto used = write_interlaced(mask_of(picture), picture.size(), width, scratch(), out);
  EXPECT_TRUE(used) << picture.size() << ", width " << width;
  out.resize(used.value_or(0));
  return out;
}

/// The set that the bytes stand for, or nothing.
std::optional<Mask> read(std::span<const std::byte> code, size_t n, size_t k, size_t width) {
  Mask mask(mask_words(n));
  if (!read_interlaced(code, n, k, width, scratch(), mask)) return std::nullopt;
  EXPECT_EQ(count_masked(mask), k);
  EXPECT_TRUE(n % 64 == 0 || mask.back() >> n % 64 == 0);
  return mask;
}

struct Shape {
  size_t n;
  size_t width;
};

const Shape kShapes[] = {{1, 1},      {2, 1},     {2, 2},      {5, 3},       {64, 8},
                         {65, 9},     {100, 1},   {100, 64},   {100, 65},    {100, 100},
                         {300, 1000}, {1000, 7},  {1024, 32},  {4096, 8},    {999, 31},
                         {640, 64},   {5000, 96}, {4097, 250}, {3000, 2990}, {3000, size_t{1} << 31}};

TEST(Interlaced, FollowsItsDefinition) {
  for (const auto& [n, width] : kShapes) {
    for (const double share : {0.01, 0.1, 0.3, 0.5, 0.8, 1.0}) {
      const auto k = std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(n)));
      for (const bool spots : {false, true}) {
        const auto picture = random_picture(n, k, width, spots, 1);
        const auto code = coded(picture, width);
        ASSERT_EQ(code, bytes_of(interlaced_text(picture, width))) << k << " of " << n << ", " << width;
        ASSERT_EQ(read(code, n, k, width), mask_of(picture)) << k << " of " << n << ", " << width;
      }
    }
  }
}

TEST(Interlaced, ExtremeSetsStayWithinTheBound) {
  for (const auto& [n, width] : kShapes) {
    for (const size_t period : {1U, 2U, 3U, 5U, 8U}) {
      for (const bool at_front : {false, true}) {
        Picture picture(n);
        const size_t k = (n + period - 1) / period;
        for (size_t i = 0; i < k; ++i) picture[at_front ? i : i * period] = true;
        const auto code = coded(picture, width);
        ASSERT_EQ(read(code, n, k, width), mask_of(picture)) << n << ", " << width << ", " << period;
      }
    }
  }
}

TEST(Interlaced, GivesUpWhereThereIsNoRoom) {
  const auto picture = random_picture(4096, 400, 16, true, 2);
  const auto code = coded(picture, 16);
  for (size_t size = 0; size < code.size(); ++size) {
    std::vector<std::byte> out(size);
    ASSERT_FALSE(write_interlaced(mask_of(picture), 4096, 16, scratch(), out)) << size;
  }
}

TEST(Interlaced, GainsWhereNeighboursAreAlike) {
  const size_t n = 16384;
  const auto size_by_rice = [&](const Picture& picture) {
    std::vector<std::byte> out(2 * n);
    return static_cast<double>(*write_rice(mask_of(picture), rice_parameter(n, count(picture)), out));
  };
  const auto uniform = random_picture(n, n / 10, 32, false, 3);
  EXPECT_LT(static_cast<double>(coded(uniform, 32).size()), 1.03 * size_by_rice(uniform));
  const auto spots = random_picture(n, n / 10, 32, true, 3);
  EXPECT_LT(static_cast<double>(coded(spots, 32).size()), 0.8 * size_by_rice(spots));
  Picture lattice(n);  // the positions of a grid, but for every eighth
  for (size_t i = 0; i < n; ++i) lattice[i] = i / 32 % 2 == 0 && i % 2 == 0 && i * 7 % 16 != 6;
  EXPECT_LT(static_cast<double>(coded(lattice, 32).size()), 0.3 * size_by_rice(lattice));
}

TEST(Interlaced, RejectsEveryOtherLengthAndCount) {
  const size_t n = 1000;
  const size_t k = 150;
  const auto picture = random_picture(n, k, 20, true, 4);
  const auto good = coded(picture, 20);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(read(std::span(good).first(size), n, k, 20)) << size;
  }
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(read(longer, n, k, 20));
  EXPECT_FALSE(read(good, n, k - 1, 20));
  EXPECT_FALSE(read(good, n, k + 1, 20));
  // One of one position: a bit for its count, and seven of padding.
  for (int byte = 0; byte < 256; ++byte) {
    const auto code = static_cast<std::byte>(byte);
    EXPECT_EQ(read({&code, 1}, 1, 1, 1).has_value(), byte == 1) << byte;
  }
}

TEST(Interlaced, SurvivesEveryChangedBitAndRandomBytes) {
  const auto picture = random_picture(777, 200, 24, true, 5);
  const auto good = coded(picture, 24);
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_NE(read(bad, 777, 200, 24), mask_of(picture)) << bit;
  }
  std::mt19937 random(6);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random() % 40);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() & random());
    const size_t k = 1 + random() % 40;
    read(bytes, k + random() % 300, k, 1 + random() % 20);
  }
}

}  // namespace
}  // namespace strait::kernels
