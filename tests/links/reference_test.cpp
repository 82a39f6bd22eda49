#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/codecs/sparsifier.h"
#include "strait/links/link.h"

namespace strait {
namespace {

/// Stands for topk:0.5 of 6 elements: keeps a half of the value, its larger half a quarter, its smaller an
/// eighth, so that what a scheme does with a codec can be worked out by hand.
at::Tensor share_of(const Codec& part, const at::Tensor& x, const MessageContext& /*context*/) {
  const size_t k = part.sparsifier()->shape_of(meta_of(x)).k;
  return x.mul(k == 3 ? 0.5 : k == 2 ? 0.25 : 0.125);
}

/// What comes of the messages 8, 16 and 32.
std::vector<float> received(const std::string& feedback) {
  const MessageOperator reference = make_link("topk:0.5", feedback)->reference(share_of);
  std::vector<float> seen;
  at::Tensor previous;
  for (const float value : {8.0F, 16.0F, 32.0F}) {
    const at::Tensor x = at::full({1, 6}, value);
    seen.push_back(reference(x, {.previous = &previous})[0][5].item<float>());
    previous = x;
  }
  return seen;
}

TEST(LinkReference, FollowsTheDefinitionOfEachScheme) {
  EXPECT_THAT(received("none"), testing::ElementsAre(4, 8, 16));
  EXPECT_THAT(received("ef"), testing::ElementsAre(4, 10, 21));        // e: 4, 10, 21
  EXPECT_THAT(received("ef:0.5"), testing::ElementsAre(4, 9, 18.75));  // e: 2, 5.5
  EXPECT_THAT(received("ef:1"), testing::ElementsAre(4, 10, 21));
  EXPECT_THAT(received("ef21"), testing::ElementsAre(4, 10, 21));         // g + (x - g) / 2
  EXPECT_THAT(received("diana:0.5"), testing::ElementsAre(4, 9, 18.75));  // g: 2, 5.5
  EXPECT_THAT(received("diana:1"), testing::ElementsAre(4, 10, 21));
  EXPECT_THAT(received("diana:0"), testing::ElementsAre(4, 8, 16));
  EXPECT_THAT(received("ef21-sgdm:0.25"), testing::ElementsAre(1, 3.25, 7.6875));  // v: 2, 5.5, 12.125
  EXPECT_THAT(received("ef-mixed"), testing::ElementsAre(2, 4.75, 10.15625));      // e: 6, 17.25
  EXPECT_THAT(received("aq-sgd"), testing::ElementsAre(8, 12, 22));
  EXPECT_THAT(received("marina:0.01"), testing::ElementsAre(8, 12, 20));  // g + (x - x_before) / 2
  EXPECT_THAT(received("marina:1"), testing::ElementsAre(8, 16, 32));
}

TEST(LinkReference, IsThereForEachScheme) {
  for (const auto& feedback : link_samples()) {
    EXPECT_TRUE(make_link("topk:0.5", feedback)->reference(share_of)) << feedback;
  }
}

TEST(LinkReference, ACopyGoesOnByItself) {
  MessageOperator reference = make_link("topk:0.5", "ef")->reference(share_of);
  const at::Tensor x = at::full({1, 6}, 8.0F);
  reference(x, {});
  const MessageOperator copy = reference;
  EXPECT_EQ(copy(x, {})[0][0].item<float>(), 6);
  EXPECT_EQ(reference(x, {})[0][0].item<float>(), 6);
}

/// What crosses is the codec's own message, or more than that.
TEST(Link, SaysWhetherItsMessagesAreTheCodecs) {
  const MessageMeta meta{{2, 40}};
  at::manual_seed(5);
  for (const auto& feedback : link_samples()) {
    const auto codec = make_codec("topk:0.1,index=bitmap");
    const auto link = make_link(codec, feedback);
    EXPECT_EQ(link->sends_codec_messages(), link->payload_size(meta).bound == codec->payload_size(meta).bound)
        << feedback;
  }
}

TEST(Link, KnowsTheIndexSetsOfAMessage) {
  const MessageMeta meta{{2, 6}};
  const auto kept = [&](const std::string& feedback, const std::string& codec) {
    std::vector<size_t> ks;
    for (const auto& set : make_link(codec, feedback)->index_sets(meta)) {
      EXPECT_EQ(set.groups, 2);
      EXPECT_EQ(set.n, 6);
      ks.push_back(set.k);
    }
    return ks;
  };
  EXPECT_THAT(kept("none", "topk:0.5"), testing::ElementsAre(3));
  EXPECT_THAT(kept("ef21", "topk:0.5"), testing::ElementsAre(3));
  EXPECT_THAT(kept("ef-mixed", "topk:0.5"), testing::ElementsAre(2, 1));
  EXPECT_THAT(kept("none", "fp16"), testing::IsEmpty());
  EXPECT_THAT(kept("ef", "random:0.5"), testing::IsEmpty()) << "both ends draw them";
}

}  // namespace
}  // namespace strait
