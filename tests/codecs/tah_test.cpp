// tah against its definition in float64, with LibTorch's fp16.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "strait/base/text.h"
#include "tests/codecs/inputs.h"
#include "tests/kernels/numbers.h"

namespace strait {
namespace {

struct TahCase {
  unsigned bits = 4;
  double share = 0.2;
  double factor = 2;

  std::string spec() const { return fmt::format("tah:{},share={},factor={}", bits, share, factor); }
};

/// Which of a sample's tokens take a bit less.
std::vector<bool> narrow_tokens(std::span<const float> sample, size_t width, double share) {
  const size_t tokens = sample.size() / width;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < tokens; ++i)
    order.emplace_back(kernels::entropy_of(sample.subspan(i * width, width)), i);
  std::ranges::sort(order);
  std::vector<bool> narrow(tokens);
  const auto count = static_cast<size_t>(std::floor(share * static_cast<double>(tokens) + 1e-9));
  for (size_t i = 0; i < count; ++i) narrow[order[i].second] = true;
  return narrow;
}

std::vector<double> times_hadamard(const std::vector<double>& x) {
  std::vector<double> y(64);
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j < 64; ++j) y[i] += (std::popcount(i & j) % 2 == 0 ? x[j] : -x[j]) / 8;
  }
  return y;
}

double through_half(double x) { return static_cast<float>(at::Half(static_cast<float>(x))); }

std::vector<double> seen_of_tile(std::span<const float> tile, unsigned bits, double factor) {
  std::vector<double> x(tile.begin(), tile.end());
  std::vector<double> magnitudes(64);
  std::ranges::transform(x, magnitudes.begin(), [](double v) { return std::abs(v); });
  const auto pivot = static_cast<size_t>(std::ranges::max_element(magnitudes) - magnitudes.begin());
  std::ranges::sort(magnitudes, std::greater());
  const bool rotates = magnitudes[0] > 0 && magnitudes[0] >= factor * magnitudes[1];
  if (rotates) {
    std::swap(x[0], x[pivot]);
    x = times_hadamard(x);
  }
  const auto [lo, hi] = std::ranges::minmax(x);
  const double levels = std::exp2(bits) - 1;
  const double least = through_half(lo);
  const double step = through_half((hi - lo) / levels);
  for (double& v : x) {
    const double code = step == 0 ? 0 : std::clamp(std::nearbyint((v - least) / step), 0.0, levels);
    v = least + code * step;
  }
  if (rotates) {
    x = times_hadamard(x);
    std::swap(x[0], x[pivot]);
  }
  return x;
}

std::vector<double> seen_by_definition(const at::Tensor& x, const TahCase& with) {
  const auto values = values_of(x);
  const auto width = static_cast<size_t>(x.size(-1));
  const size_t sample = values.size() / static_cast<size_t>(x.size(0));
  std::vector<double> seen;
  for (size_t begin = 0; begin < values.size(); begin += sample) {
    const auto elements = std::span(values).subspan(begin, sample);
    const auto narrow = narrow_tokens(elements, width, with.share);
    for (size_t i = 0; i < sample; i += 64) {
      const unsigned bits = with.bits - (narrow[i / width] ? 1 : 0);
      const auto tile = seen_of_tile(elements.subspan(i, 64), bits, with.factor);
      seen.insert(seen.end(), tile.begin(), tile.end());
    }
  }
  return seen;
}

/// Normal numbers with an element of each tile, at another place each, that is `factor` times as large.
at::Tensor with_spikes(std::vector<int64_t> shape, float factor, unsigned seed) {
  const at::Tensor x = normal_tensor(std::move(shape), seed);
  for (int64_t tile = 0; tile < x.numel() / 64; ++tile)
    x.data_ptr<float>()[tile * 64 + tile * 13 % 64] *= factor;
  return x;
}

double squared_error(const std::string& spec, const at::Tensor& x) {
  return received(spec, x).sub(x).to(at::kDouble).square().sum().item<double>();
}

TEST(TahCodec, IsWhatItsDefinitionSays) {
  for (const auto& with : {TahCase{}, TahCase{.bits = 3}, TahCase{.share = 0.5, .factor = 1.1},
                           TahCase{.share = 0}, TahCase{.share = 1, .factor = 30}}) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{3, 11, 192}, {2, 640}, {2, 3, 4, 64}}) {
      for (const at::Tensor& x : {normal_tensor(shape, 1), with_spikes(shape, 40, 2)}) {
        SCOPED_TRACE(with.spec());
        const auto seen = values_of(received(with.spec(), x));
        const auto expected = seen_by_definition(x, with);
        for (size_t i = 0; i < seen.size(); ++i) ASSERT_NEAR(seen[i], expected[i], 2e-5) << i;
      }
    }
  }
}

TEST(TahCodec, PivotsAreUndoneExactly) {
  // A single element of 8 h is h everywhere after the rotation, for which codes of 0 are exact.
  const at::Tensor x = at::zeros({1, 2, 64 * 64});
  for (int64_t tile = 0; tile < 64; ++tile) {
    x[0][0][tile * 64 + tile] = static_cast<float>(8 * (tile + 1));
    x[0][1][tile * 64 + 63 - tile] = static_cast<float>(-8 * (tile + 1));
  }
  EXPECT_TRUE(at::equal(received("tah:4", x), x));
  EXPECT_TRUE(at::equal(received("tah:3,share=1", x), x));
}

TEST(TahCodec, SpikesCostLessThanInBlocksOfTheirRange) {
  const at::Tensor x = with_spikes({4, 10, 256}, 40, 3);
  for (const unsigned bits : {3U, 4U}) {
    const double plain = squared_error(fmt::format("quant:{},scope=block:64", bits), x);
    EXPECT_LT(squared_error(fmt::format("tah:{},share=0", bits), x), plain / 4);
    EXPECT_LT(squared_error(fmt::format("tah:{}", bits), x), plain / 2);
    EXPECT_LT(plain / 4, squared_error(fmt::format("tah:{},share=0,factor=1000000", bits), x))
        << "without pivots";
  }
}

/// The tokens of the first sample, up to 8, that take a bit less.
unsigned narrow_of(const std::string& spec, const at::Tensor& x) {
  return std::to_integer<unsigned>(encoded(*make_codec(spec), x).front());
}

TEST(TahCodec, TokensOfLeastEntropyTakeABitLess) {
  const at::Tensor x = at::ones({1, 8, 64});  // of entropy ln 64
  x[0][2].narrow(0, 5, 59).fill_(0);          // ln 5
  x[0][6].narrow(0, 1, 63).fill_(0);          // 0
  EXPECT_EQ(narrow_of("tah:4", x), 1U << 6) << "floor(0.2 * 8) is one";
  EXPECT_EQ(narrow_of("tah:4,share=0.25", x), 1U << 6 | 1U << 2);
  EXPECT_EQ(narrow_of("tah:4,share=0.5", x), 1U << 6 | 1U << 2 | 0b11U) << "ties go to the lower index";
  EXPECT_EQ(narrow_of("tah:4,share=0.124", x), 0);
  EXPECT_EQ(narrow_of("tah:4,share=0", x), 0);
  EXPECT_EQ(narrow_of("tah:4,share=1", x), 0xff);
  x[0][4].fill_(0);
  EXPECT_EQ(narrow_of("tah:4,share=0.25", x), 1U << 6 | 1U << 4) << "nothing has no entropy";
}

TEST(TahCodec, EntropyDoesNotDependOnTheScale) {
  const at::Tensor x = normal_tensor({1, 8, 64}, 4);
  for (const double scale : {1e-30, 1e-3, 1e3}) {
    EXPECT_EQ(narrow_of("tah:4,share=0.5", x.mul(scale)), narrow_of("tah:4,share=0.5", x));
  }
}

TEST(TahCodec, SendsAPlaceForEachPivotAlone) {
  const auto size = [](const at::Tensor& x) { return encoded(*make_codec("tah:4"), x).size(); };
  const size_t fixed = 2 + 2 + 10 * 4 + 8 * 32 + 2 * 24;  // ten tokens of a tile, two of them of 3 bits
  const at::Tensor x = normal_tensor({1, 10, 64}, 5).clamp(-2, 2);
  EXPECT_EQ(size(x.clamp(-1, 1)), fixed);
  x[0][3][9] = 10;
  EXPECT_EQ(size(x), fixed + 1);
  x[0][9][63] = -10;
  EXPECT_EQ(size(x), fixed + 2);
  EXPECT_EQ(make_codec("tah:4")->payload_size(meta_of(x)).bound, fixed + 8);
  EXPECT_FALSE(make_codec("tah:4")->payload_size(meta_of(x)).exact);
}

TEST(TahCodec, RefusesWhatFp16CannotHold) {
  const auto complaint = [](const at::Tensor& x) -> std::string {
    try {
      encoded(*make_codec("tah:4"), x);
    } catch (const NumericError& error) {
      EXPECT_THROW(make_codec("tah:4")->reconstruct(x, {}), NumericError);
      return error.what();
    }
    return "";
  };
  const at::Tensor x = at::zeros({1, 64});
  x.fill_(65519);
  EXPECT_EQ(complaint(x), "");
  x.fill_(65520);
  EXPECT_EQ(complaint(x),
            "the least value or the step of a tile, of magnitude 65520, is past the range of fp16");
  x.fill_(0).narrow(1, 0, 2).fill_(1e6);
  EXPECT_EQ(complaint(x),
            "the least value or the step of a tile, of magnitude 66666.664, is past the range of fp16");
  x.fill_(0)[0][7] = 4e38 / 2;
  EXPECT_EQ(complaint(x), "a value of magnitude 2e+38 is past the range of a rotation, 2^121");
}

TEST(TahCodec, RefusesShapesWithoutWholeTiles) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{64}, {3, 96}, {2, 64, 63}}) {
    try {
      make_codec("tah:4")->payload_size({shape});
      FAIL();
    } catch (const InputError& error) {
      EXPECT_EQ(
          error.what(),
          "codec tah:4 takes messages of two dimensions or more, the last of them a multiple of 64, found "
          "shape " +
              shape_text(shape));
    }
  }
}

TEST(TahCodec, RefusesPayloadsThatNoTensorGives) {
  // 5 tokens of a tile: a byte of widths, one of pivots, ranges from 2 on, codes from 22 on, then one pivot.
  const at::Tensor x = normal_tensor({1, 5, 64}, 6).clamp(-1, 1);
  x[0][1][3] = 9;
  x[0][4].fill_(2);
  const auto codec = make_codec("tah:4");
  const auto good = encoded(*codec, x);
  ASSERT_EQ(good.size(), 22 + 4 * 32 + 24 + 1U);
  const auto with = [&](size_t place, unsigned byte) {
    auto bad = good;
    bad[place] = static_cast<std::byte>(byte);
    return bad;
  };
  EXPECT_NO_THROW(decoded(*codec, good, meta_of(x)));
  for (const auto& bad : {with(0, 0b00011), with(0, 0), with(0, 0b100001), with(1, 0b100010), with(1, 0),
                          with(3, 0x7c), with(3, 0xfe), with(5, 0x7c), with(5, 0x80), with(174, 0x41)}) {
    EXPECT_THROW(decoded(*codec, bad, meta_of(x)), WireError);
  }
  const size_t flat = std::to_integer<unsigned>(good[0]) == 1U << 4 ? 22 + 4 * 32 : 22 + 3 * 32 + 24;
  EXPECT_THROW(decoded(*codec, with(flat, 1), meta_of(x)), WireError) << "a code where the step is 0";
}

TEST(TahCodec, RefusesWhatItDoesNotKnow) {
  for (const char* spec : {"tah", "tah:2", "tah:5", "tah:4,share=1.1", "tah:4,share=-1", "tah:4,share=",
                           "tah:4,factor=0.9", "tah:4,factor=2e1", "tah:4,factor=", "tah:4,tile=64"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
