#include "strait/links/link.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace strait {
namespace {

std::vector<std::byte> encoded(Encoder& encoder, const Link& link, const at::Tensor& x, bool frozen) {
  std::vector<std::byte> space(link.payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  if (frozen) {
    encoder.encode_frozen(x, {}, out);
  } else {
    encoder.encode(x, {}, out);
  }
  space.resize(out.used());
  return space;
}

TEST(Link, PlainIsTheBareCodec) {
  const auto codec = make_codec("topk:0.5");
  const auto link = make_link(codec);
  const auto encoder = link->make_encoder();
  const auto decoder = link->make_decoder();
  for (int message = 0; message < 3; ++message) {
    const at::Tensor x = at::randn({2, 10});
    const auto bytes = encoded(*encoder, *link, x, false);
    EXPECT_EQ(bytes, encoded(*encoder, *link, x, true));
    ByteReader in(bytes);
    EXPECT_TRUE(at::equal(decoder->decode(in, meta_of(x), {}).tensor, codec->reconstruct(x, {})));
    ByteReader again(bytes);
    EXPECT_TRUE(at::equal(decoder->decode_frozen(again, meta_of(x), {}), codec->reconstruct(x, {})));
  }
}

TEST(Link, AnUnknownFeedbackIsNamed) {
  try {
    make_link("none", "nonne");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "unknown feedback \"nonne\" (did you mean \"none\"?); expected one of: none, ef, ef21, "
                 "ef-mixed, aq-sgd, diana, ef21-sgdm, marina");
  }
}

TEST(Link, TakesTheCodecForAny) {
  for (const auto& feedback : link_samples()) {
    EXPECT_NO_THROW(make_link(codec_for_any_link(), feedback)) << feedback;
    EXPECT_NO_THROW(check_feedback(feedback));
  }
  EXPECT_NO_THROW(make_reuse_link(codec_for_any_link()));
}

}  // namespace
}  // namespace strait
