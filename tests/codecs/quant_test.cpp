#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "strait/base/random.h"
#include "strait/codecs/quant_group.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

/// Three halves of the step between the largest numbers: the difference from the largest one is rounded up.
constexpr float kHalfSteps = 0x1.8p104F;

/// What docs/operators.md says, in the arithmetic of a type, without any of the library's code.
template <class Real>
std::vector<Real> plain_quant(const std::vector<float>& x, unsigned bits, size_t row, size_t group) {
  const auto levels = static_cast<Real>((1U << bits) - 1);
  std::vector<Real> out;
  for (size_t begin = 0; begin < x.size();) {
    const size_t row_end = (begin / row + 1) * row;
    const size_t end = std::min(begin + group, row_end);
    const auto [lo, hi] = std::minmax_element(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                              x.begin() + static_cast<std::ptrdiff_t>(end));
    const Real range = static_cast<Real>(*hi) - static_cast<Real>(*lo);
    for (size_t i = begin; i < end; ++i) {
      const Real t = range == 0 ? 0 : (static_cast<Real>(x[i]) - static_cast<Real>(*lo)) / range * levels;
      out.push_back(static_cast<Real>(*lo) + std::nearbyint(t) / levels * range);
    }
    begin = end;
  }
  return out;
}

TEST(Quant, EveryWidthAndScopeIsTheFormula) {
  const at::Tensor tensor = normal_tensor({5, 83}, 30);
  const auto x = values_of(tensor);
  for (unsigned bits = 1; bits <= 8; ++bits) {
    const std::vector<std::tuple<std::string, size_t, size_t>> scopes = {
        {"", 415, 415}, {",scope=sample", 83, 83}, {",scope=block:16", 83, 16}, {",scope=block:128", 83, 128}};
    for (const auto& [scope, row, group] : scopes) {
      const auto codec = make_codec("quant:" + std::to_string(bits) + scope);
      const auto got = values_of(decoded(*codec, encoded(*codec, tensor), meta_of(tensor)));
      EXPECT_EQ(got, plain_quant<float>(x, bits, row, group)) << bits << scope;
      // No element lies so near a tie that float arithmetic falls on its other side.
      const auto exact = plain_quant<double>(x, bits, row, group);
      ASSERT_EQ(got.size(), exact.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], exact[i], 4e-6) << bits << scope << " " << i;
    }
  }
}

TEST(Quant, PayloadIsRangesThenCodes) {
  const at::Tensor x = normal_tensor({3, 21}, 31);
  const auto codec = make_codec("quant:3,scope=block:8");
  const auto payload = encoded(*codec, x);
  // Three groups a row of 8, 8 and 5 elements: 3, 3 and 2 bytes.
  ASSERT_EQ(payload.size(), 9U * 8 + 3U * 8);
  const auto values = values_of(x);
  for (size_t group = 0; group < 9; ++group) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(group / 3 * 21 + group % 3 * 8);
    const auto [lo, hi] = std::minmax_element(begin, begin + (group % 3 == 2 ? 5 : 8));
    float range[2];
    std::memcpy(range, payload.data() + group * 8, 8);
    EXPECT_EQ(range[0], *lo);
    EXPECT_EQ(range[1], *hi);
  }
}

TEST(Quant, AConstantGroupIsExact) {
  for (const float value : {1.1F, -7.3e-40F, 3.4e38F}) {
    for (const char* spec : {"quant:1", "quant:8,scope=sample", "quant:3,scope=block:8,rounding=stochastic"}) {
      const at::Tensor x = at::full({3, 19}, value);
      EXPECT_TRUE(same_bits(make_codec(spec)->reconstruct(x, {}), x)) << spec << ", " << value;
    }
  }
}

TEST(Quant, AConstantGroupOfMinusZerosIsPlusZero) {
  const auto codec = make_codec("quant:4");
  const at::Tensor x = at::full({2, 5}, -0.0F);
  EXPECT_TRUE(same_bits(decoded(*codec, encoded(*codec, x), meta_of(x)), at::full({2, 5}, 0.0F)));
}

TEST(Quant, ARangeThatIsPastFloat32WhereItIsAddedIsRefused) {
  const at::Tensor x = at::full({1, 8}, std::numeric_limits<float>::max());
  x.data_ptr<float>()[3] = kHalfSteps;
  for (const char* spec : {"quant:8", "quant:3,scope=sample,rounding=stochastic", "topk:1,values=quant:4"}) {
    EXPECT_THROW(encoded(*make_codec(spec), x), NumericError) << spec;
    EXPECT_THROW(make_codec(spec)->reconstruct(x, {}), NumericError) << spec;
  }
  EXPECT_TRUE(same_bits(received("bounded:0.1", x), x));  // as float32
}

TEST(Quant, StochasticIsUnbiasedOverSteps) {
  const auto codec = make_codec("quant:2,rounding=stochastic");
  const at::Tensor x = normal_tensor({4, 25}, 32);
  at::Tensor sum = at::full({4, 25}, 0.0F).to(at::kDouble);
  constexpr int kSteps = 4000;
  for (int step = 0; step < kSteps; ++step) {
    MessageContext context;
    context.step = static_cast<uint64_t>(step);
    sum.add_(codec->reconstruct(x, context).to(at::kDouble));
  }
  const double step = x.max().sub(x.min()).item<double>() / 3;
  const double error = sum.div(kSteps).sub(x.to(at::kDouble)).abs().max().item<double>();
  EXPECT_LT(error, 4.5 * step / 2 / std::sqrt(kSteps));
}

TEST(Quant, StochasticDrawsDependOnEveryPartOfTheKey) {
  const auto codec = make_codec("quant:2,rounding=stochastic");
  const at::Tensor x = normal_tensor({4, 100}, 33);
  const MessageContext base{.seed = 1, .boundary = 1, .direction = Direction::activation, .step = 1};
  const auto reference = encoded(*codec, x, base);
  MessageContext same = base;
  same.micro_batch = 3;
  EXPECT_EQ(encoded(*codec, x, same), reference);
  std::vector<MessageContext> others(5, base);
  others[0].seed = 2;
  others[1].boundary = 2;
  others[2].direction = Direction::gradient;
  others[3].step = 2;
  others[4].first_row = 1;
  for (const auto& other : others) EXPECT_NE(encoded(*codec, x, other), reference);
}

TEST(Quant, DitherOnTensorsIsTheKernels) {
  // The message's second element is the batch's element 2^32.
  const MessageContext context{.seed = 9, .boundary = 3, .first_row = 0xffffffff};
  const MessageMeta meta{{4, 1}};
  const auto got = values_of(dither_of(context, meta, at::empty({0})));
  const kernels::Dither dither = make_dither(context, meta);
  ASSERT_EQ(got.size(), 4U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], kernels::dither_at(dither, dither.first_index + i));
}

class DamagedQuant : public testing::Test {
 protected:
  /// A payload of one group of five codes of 3 bits.
  std::vector<std::byte> payload(float lo, float hi, uint16_t codes) {
    std::vector<std::byte> bytes(10);
    std::memcpy(bytes.data(), &lo, 4);
    std::memcpy(bytes.data() + 4, &hi, 4);
    std::memcpy(bytes.data() + 8, &codes, 2);
    return bytes;
  }
  at::Tensor decode(const std::vector<std::byte>& bytes) { return decoded(*codec_, bytes, {{1, 5}}); }

  std::shared_ptr<const Codec> codec_ = make_codec("quant:3");
};

TEST_F(DamagedQuant, RangesThatCannotOccurAreRefused) {
  EXPECT_NO_THROW(decode(payload(-1, 1, 0x7fff)));
  EXPECT_NO_THROW(decode(payload(2, 2, 0)));
  EXPECT_THROW(decode(payload(1, -1, 0)), WireError);
  EXPECT_THROW(decode(payload(std::nanf(""), 1, 0)), WireError);
  EXPECT_THROW(decode(payload(0, INFINITY, 0)), WireError);
  EXPECT_THROW(decode(payload(-INFINITY, 0, 0)), WireError);
  EXPECT_THROW(decode(payload(-3e38F, 3e38F, 0)), WireError);
  EXPECT_THROW(decode(payload(kHalfSteps, std::numeric_limits<float>::max(), 0)), WireError);
  EXPECT_THROW(decode(payload(-0.0F, 1, 0)), WireError);
  EXPECT_THROW(decode(payload(-1, -0.0F, 0)), WireError);
}

TEST_F(DamagedQuant, CodesThatCannotOccurAreRefused) {
  EXPECT_THROW(decode(payload(-1, 1, 0x8000)), WireError);
  EXPECT_THROW(decode(payload(2, 2, 1)), WireError);
  EXPECT_THROW(decode(payload(2, 2, 0x4000)), WireError);
}

TEST(Quant, SpecsThatMeanNothingAreRefused) {
  for (const char* spec :
       {"quant", "quant:0", "quant:9", "quant:4.0", "quant:4,scope=row", "quant:4,scope=block",
        "quant:4,scope=block:0", "quant:4,scope=block:12", "quant:4,scope=block:-8", "quant:4,rounding=up",
        "quant:4,values=fp16", "fp16:1", "bf16,scope=tensor"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
