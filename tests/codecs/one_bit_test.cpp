// sign and onebit against the formulas, summed in float64.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

struct Scoped {
  std::string scope;
  size_t row;    // elements of a row that groups do not cross
  size_t group;  // elements of a group at most
};

/// Of 4 rows of 83 elements.
const std::vector<Scoped> kScopes = {
    {"", 83, 83}, {",scope=tensor", 332, 332}, {",scope=block:16", 83, 16}, {",scope=block:128", 83, 83}};

/// Calls work(begin, end) for each group of `size` elements.
template <class Work>
void for_groups(size_t size, const Scoped& scoped, const Work& work) {
  for (size_t row = 0; row < size; row += scoped.row) {
    for (size_t begin = row; begin < row + scoped.row; begin += scoped.group) {
      work(begin, std::min(begin + scoped.group, row + scoped.row));
    }
  }
}

TEST(Sign, IsTheMeanMagnitudeOfTheGroupWithTheElementsSign) {
  const at::Tensor x = normal_tensor({4, 83}, 1);
  const auto values = values_of(x);
  for (const Scoped& scoped : kScopes) {
    const auto codec = make_codec("sign" + scoped.scope);
    const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
    for_groups(values.size(), scoped, [&](size_t begin, size_t end) {
      double sum = 0;
      for (size_t i = begin; i < end; ++i) sum += std::abs(static_cast<double>(values[i]));
      const double mean = sum / static_cast<double>(end - begin);
      for (size_t i = begin; i < end; ++i) {
        EXPECT_EQ(std::signbit(got[i]), values[i] < 0) << scoped.scope << " " << i;
        EXPECT_NEAR(std::abs(got[i]), mean, mean * 1e-6) << scoped.scope << " " << i;
        EXPECT_EQ(std::abs(got[i]), std::abs(got[begin])) << scoped.scope << " " << i;
      }
    });
  }
}

/// The square error of a group where what lies below 0 becomes `below` and the rest `above`.
double square_error(std::span<const float> x, double below, double above) {
  double sum = 0;
  for (const float value : x) sum += std::pow(value - (value < 0 ? below : above), 2);
  return sum;
}

TEST(Sign, ItsScaleLeavesTheLeastSquareError) {
  const at::Tensor x = normal_tensor({1, 64}, 2);
  const auto values = values_of(x);
  const double scale = std::abs(values_of(make_codec("sign")->reconstruct(x, {}))[0]);
  const double least = square_error(values, -scale, scale);
  for (const double factor : {0.5, 0.99, 1.01, 2.0}) {
    EXPECT_GT(square_error(values, -scale * factor, scale * factor), least);
  }
}

TEST(OneBit, IsTheMeanOfItsSide) {
  const at::Tensor x = normal_tensor({4, 83}, 3);
  const auto values = values_of(x);
  for (const Scoped& scoped : kScopes) {
    const auto codec = make_codec("onebit" + scoped.scope);
    const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
    for_groups(values.size(), scoped, [&](size_t begin, size_t end) {
      for (const bool below : {true, false}) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = begin; i < end; ++i) {
          if ((values[i] < 0) == below) sum += values[i], ++count;
        }
        const double mean = count == 0 ? 0 : sum / static_cast<double>(count);
        for (size_t i = begin; i < end; ++i) {
          if ((values[i] < 0) == below) {
            EXPECT_NEAR(got[i], mean, std::abs(mean) * 1e-6) << scoped.scope << " " << i;
          }
        }
      }
    });
  }
}

TEST(OneBit, ItsMeansLeaveTheLeastSquareError) {
  const at::Tensor x = normal_tensor({1, 64}, 4);
  const auto values = values_of(x);
  double below = 0;
  double above = 0;
  for (const float value : values_of(make_codec("onebit")->reconstruct(x, {})))
    (value < 0 ? below : above) = value;
  const double least = square_error(values, below, above);
  for (const double factor : {0.5, 0.99, 1.01, 2.0}) {
    EXPECT_GT(square_error(values, below * factor, above), least);
    EXPECT_GT(square_error(values, below, above * factor), least);
  }
}

TEST(OneBit, AGroupOnOneSideOfZeroHasNothingOnTheOther) {
  const at::Tensor x = normal_tensor({2, 40}, 5).abs_().add_(0.1);
  const auto codec = make_codec("onebit");
  for (const bool negative : {false, true}) {
    const at::Tensor side = negative ? x.neg() : x;
    auto payload = encoded(*codec, side);
    float absent = 1;
    std::memcpy(&absent, payload.data() + (negative ? sizeof(float) : 0), sizeof absent);
    EXPECT_EQ(absent, 0);
    for (const float value : values_of(decoded(*codec, payload, meta_of(x)))) EXPECT_EQ(value < 0, negative);
  }
}

/// A payload of two rows of 3 elements, with one float32 of it replaced.
std::vector<std::byte> with_float(const char* spec, size_t number, float value) {
  auto payload = encoded(*make_codec(spec), normal_tensor({2, 3}, 6));
  std::memcpy(payload.data() + number * sizeof value, &value, sizeof value);
  return payload;
}

TEST(SignsOnTheWire, RefuseWhatNoTensorGives) {
  const auto read = [](const char* spec, std::span<const std::byte> payload) {
    decoded(*make_codec(spec), payload, {{2, 3}});
  };
  for (const float bad : {-1.0F, -0.0F, INFINITY, std::nanf("")}) {
    EXPECT_THROW(read("sign", with_float("sign", 1, bad)), WireError) << bad;
    EXPECT_THROW(read("onebit", with_float("onebit", 1, bad)), WireError) << bad;
  }
  for (const float bad : {1.0F, -0.0F, -INFINITY, std::nanf("")}) {
    EXPECT_THROW(read("onebit", with_float("onebit", 0, bad)), WireError) << bad;
  }
  for (const char* spec : {"sign", "onebit"}) {
    auto payload = encoded(*make_codec(spec), normal_tensor({2, 3}, 6));
    payload.back() |= std::byte{0x08};  // behind the row's three bits
    EXPECT_THROW(read(spec, payload), WireError) << spec;
  }
  auto payload = encoded(*make_codec("onebit"), normal_tensor({2, 3}, 6).abs_().neg_());
  payload.back() = std::byte{0};
  EXPECT_THROW(read("onebit", payload), WireError) << "nobody is below 0";
}

TEST(SignsOnTheWire, AnEighthOfAByteAnElement) {
  const MessageMeta meta{{100, 64, 8, 8}};
  EXPECT_EQ(make_codec("sign")->payload_size(meta).bound, 100U * (4 + 4096 / 8));
  EXPECT_EQ(make_codec("onebit")->payload_size(meta).bound, 100U * (8 + 4096 / 8));
  EXPECT_EQ(make_codec("onebit,scope=block:64")->payload_size(meta).bound, 100U * 64 * (8 + 8));
  EXPECT_TRUE(make_codec("sign,scope=tensor")->payload_size(meta).exact);
}

}  // namespace
}  // namespace strait
