// columns against its definition, with norms in float64.

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/codecs/inputs.h"

namespace strait {
namespace {

struct Channelled {
  std::vector<int64_t> shape;
  size_t channels;
  size_t inner;  // elements of a channel that lie together
};

const std::vector<Channelled> kChannelled = {{{6, 20}, 20, 1},
                                             {{4, 9, 30}, 30, 1},
                                             {{3, 10, 4, 5}, 10, 20},
                                             {{2, 3, 2, 3, 11}, 11, 1},
                                             {{5, 7, 1, 1}, 7, 1}};

/// What is seen where of each `group` elements the `keep` channels of largest norm are kept.
std::vector<float> columns_of(const std::vector<float>& x, size_t group, size_t keep,
                              const Channelled& message) {
  std::vector<float> seen(x.size());
  for (size_t begin = 0; begin < x.size(); begin += group) {
    std::vector<double> norms(message.channels);
    const auto channel_of = [&](size_t i) { return i / message.inner % message.channels; };
    for (size_t i = 0; i < group; ++i) norms[channel_of(i)] += static_cast<double>(x[begin + i]) * x[begin + i];
    std::vector<size_t> order(message.channels);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(), [&](size_t channel) { return norms[channel]; });
    order.resize(keep);
    for (size_t i = 0; i < group; ++i) {
      if (std::ranges::count(order, channel_of(i)) > 0) seen[begin + i] = x[begin + i];
    }
  }
  return seen;
}

TEST(Columns, KeepsTheChannelsOfLargestNorm) {
  unsigned seed = 1;
  for (const Channelled& message : kChannelled) {
    const at::Tensor x = normal_tensor(message.shape, seed++);
    const auto values = values_of(x);
    const size_t row = meta_of(x).row_size();
    for (const auto& [scope, group] :
         {std::pair<std::string, size_t>{"tensor", values.size()}, {"sample", row}}) {
      for (const auto& [share, parts] : {std::pair<std::string, size_t>{"0.25", 4}, {"0.5", 2}, {"1", 1}}) {
        const auto codec = make_codec("columns:" + share + ",scope=" + scope);
        const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
        const size_t keep = (message.channels + parts - 1) / parts;
        EXPECT_EQ(got, columns_of(values, group, keep, message)) << x.sizes() << " " << share << " " << scope;
      }
    }
  }
}

TEST(Columns, OfEqualNormsTheLowerChannelIsKept) {
  const at::Tensor x = normal_tensor({4, 6}, 9).sign();
  const auto got = values_of(make_codec("columns:0.5")->reconstruct(x, {}));
  const auto values = values_of(x);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i % 6 < 3 ? values[i] : 0) << i;
}

TEST(Columns, SendsABitAChannelAndValuesInTheirOrder) {
  const MessageMeta pictures{{100, 64, 8, 8}};
  EXPECT_EQ(make_codec("columns:0.1")->payload_size(pictures).bound, 8U + 7 * 100 * 64 * 4);
  EXPECT_EQ(make_codec("columns:0.1,scope=sample,values=fp16")->payload_size(pictures).bound,
            100U * (8 + 7 * 64 * 2));
  EXPECT_EQ(make_codec("columns:1")->payload_size(pictures).bound, 100U * 4096 * 4) << "all, without a bitmap";
  const MessageMeta tokens{{8, 1024, 768}};
  const auto [bound, exact] = make_codec("columns:0.5,values=quant:4")->payload_size(tokens);
  EXPECT_EQ(bound, 96U + 8 + 8 * 1024 * 384 / 2);
  EXPECT_TRUE(exact);

  at::Tensor x = normal_tensor({2, 3}, 4);
  x.select(1, 1).fill_(0);
  const auto payload = encoded(*make_codec("columns:0.5"), x);
  EXPECT_EQ(payload[0], std::byte{0b101});
  std::vector<float> sent(4);
  ASSERT_EQ(payload.size(), 1 + 4 * sizeof(float));
  std::memcpy(sent.data(), payload.data() + 1, 4 * sizeof(float));
  const auto values = values_of(x);
  EXPECT_EQ(sent, (std::vector<float>{values[0], values[2], values[3], values[5]}));
}

TEST(Columns, RefusesWhatNoTensorGives) {
  const MessageMeta meta{{4, 6}};
  for (const auto bitmap : {0x03, 0x0f, 0x43, 0x00}) {  // two, four, one past the sixth, none
    auto payload = encoded(*make_codec("columns:0.5"), normal_tensor(meta.shape, 5));
    payload[0] = static_cast<std::byte>(bitmap);
    EXPECT_THROW(decoded(*make_codec("columns:0.5"), payload, meta), WireError) << bitmap;
  }
}

TEST(Columns, RefusesAMessageWithoutChannels) {
  try {
    make_codec("columns:0.1")->payload_size({{37}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "codec columns:0.1 keeps channels and takes messages of two dimensions or more, found shape [37]");
  }
  EXPECT_THROW(encoded(*make_codec("columns:0.1"), normal_tensor({37}, 6)), InputError);
}

/// Of numbers whose squares float32 cannot hold, too, and of those that are denormal.
TEST(Columns, KeepsTheChannelsOfLargestNormAtAnyMagnitude) {
  const auto codec = make_codec("columns:0.25,scope=sample");
  for (const Channelled& message : kChannelled) {
    for (const double size : {1e-42, 1e-38, 1e-24, 1e20, 1e37}) {
      const at::Tensor x = normal_tensor(message.shape, 11).mul(size);
      const auto expected =
          columns_of(values_of(x), meta_of(x).row_size(), (message.channels + 3) / 4, message);
      EXPECT_EQ(values_of(decoded(*codec, encoded(*codec, x), meta_of(x))), expected)
          << x.sizes() << " " << size;
      EXPECT_EQ(values_of(codec->reconstruct(x, {})), expected) << x.sizes() << " " << size;
    }
  }
}

TEST(Columns, KeepsTheLargerOfChannelsThatAreSmallBesideTheLargest) {
  const auto codec = make_codec("columns:0.5");
  for (const float largest : {1e-5F, 1.0F, 3e38F}) {
    const at::Tensor x = at::zeros({3, 6});
    x.select(1, 1).fill_(largest);
    x.select(1, 3).fill_(largest * 1e-30F);
    x.select(1, 4).fill_(largest * 2e-30F);
    x.select(1, 5).fill_(largest * 3e-30F);
    const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
    const auto values = values_of(x);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], i % 6 == 3 ? 0 : values[i]) << largest << " " << i;
  }
}

TEST(Columns, RefusesWhatIsNotFinite) {
  const auto codec = make_codec("columns:0.5");
  for (const float bad : {INFINITY, std::nanf("")}) {
    const at::Tensor x = normal_tensor({4, 6}, 7);
    x[2][3] = bad;
    EXPECT_THROW(encoded(*codec, x), NumericError);
    EXPECT_THROW(codec->reconstruct(x, {}), NumericError);
  }
}

TEST(Columns, RefusesWhatItDoesNotKnow) {
  for (const char* spec :
       {"columns", "columns:0", "columns:2", "columns:0.1,scope=block:8", "columns:0.1,index=rice"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
