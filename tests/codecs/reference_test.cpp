// Codec::reference against Codec::reconstruct, over every sample spec of codec_list.def.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "strait/codecs/sparsifier.h"
#include "tests/codecs/inputs.h"
#include "tests/support/largest.h"

namespace strait {
namespace {

using test::largest;

TEST(CodecReferences, OfACodecThatSelectsAndOfItsHalves) {
  const at::Tensor x = normal_tensor({3, 6}, 1);
  const auto codec = make_codec("topk:0.5");
  EXPECT_TRUE(at::equal(codec->reference(x), largest(x, 3)));
  EXPECT_TRUE(at::equal(codec->sparsifier()->half(Sparsifier::Half::larger)->reference(x), largest(x, 2)));
  EXPECT_TRUE(at::equal(codec->sparsifier()->half(Sparsifier::Half::smaller)->reference(x), largest(x, 1)));
}

TEST(CodecReferences, QuantisesAGroupOfEqualValues) {
  const at::Tensor x = at::full({2, 9}, -1.5);
  EXPECT_TRUE(at::equal(make_codec("quant:4,scope=sample")->reference(x), x));
}

TEST(CodecReferences, IsThereForTheFirstCodecs) {
  const at::Tensor x = normal_tensor({2, 9}, 1);
  for (const char* spec : {"none", "fp16", "bf16", "quant:4,scope=block:8", "topk:0.1,values=quant:4"}) {
    const at::Tensor seen = make_codec(spec)->reference(x);
    EXPECT_TRUE(seen.defined()) << spec;
    EXPECT_NE(seen.data_ptr(), x.data_ptr()) << spec;
  }
}

class CodecReference : public testing::TestWithParam<std::string> {};

bool rounds_at_random(const std::string& spec) { return spec.find("stochastic") != std::string::npos; }

TEST_P(CodecReference, GivesWhatTheCodecGives) {
  const auto codec = make_codec(GetParam());
  for (const auto& shape : std::vector<std::vector<int64_t>>{{5, 37}, {4, 3, 8, 8}, {1, 7}}) {
    const at::Tensor x = normal_tensor(shape, 2);
    const at::Tensor seen = codec->reference(x);
    const at::Tensor expected = codec->reconstruct(x, {});
    EXPECT_EQ(seen.sizes(), expected.sizes());
    if (rounds_at_random(GetParam())) {
      // Each is one of the two levels around the element.
      const double step = (x.max() - x.min()).item<double>() / 15;
      EXPECT_LT((seen - x).abs().max().item<double>(), step * 1.001);
    } else {
      EXPECT_TRUE(at::equal(seen, expected)) << x.sizes();
    }
  }
}

TEST_P(CodecReference, HalvesGiveWhatTheyGive) {
  const auto codec = make_codec(GetParam());
  if (codec->sparsifier() == nullptr || codec->sparsifier()->half(Sparsifier::Half::larger) == nullptr) return;
  const at::Tensor x = normal_tensor({6, 40}, 3);
  for (const auto half : {Sparsifier::Half::larger, Sparsifier::Half::smaller}) {
    const auto part = codec->sparsifier()->half(half);
    EXPECT_TRUE(at::equal(part->reference(x), part->reconstruct(x, {})));
  }
}

/// A codec may be without a plain formulation.
std::vector<std::string> samples_with_reference() {
  std::vector<std::string> specs;
  for (const auto& info : codec_list()) {
    for (const auto sample : info.samples) {
      if (make_codec(sample)->reference(at::ones({1, 1})).defined()) specs.emplace_back(sample);
    }
  }
  return specs;
}

INSTANTIATE_TEST_SUITE_P(EverySample, CodecReference, testing::ValuesIn(samples_with_reference()));

}  // namespace
}  // namespace strait
