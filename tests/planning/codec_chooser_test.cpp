#include "strait/planning/codec_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tests/planning/config_with.h"

namespace strait {
namespace {

using test::config_with;
using testing::ElementsAre;
using testing::Pair;

/// What one process with everything tells of itself: two boundaries, the first of which is chosen.
ChoiceFacts facts() {
  const auto sends = [](double bytes, double error, double cosine = 1) {
    return CodecTrial{.bytes = bytes, .relative_error = error, .cosine = cosine};
  };
  const std::vector<CodecTrial> ladder = {sends(1000, 0), sends(100, 0.1, 0.98)};
  return {.channels = {{"layer1", Direction::activation, 10, ladder},
                       {"layer1", Direction::gradient, 10, ladder},
                       {"layer2", Direction::activation, 10, {sends(500, 0.2)}},
                       {"layer2", Direction::gradient, 10, {sends(500, 0.3)}}},
          .stages = {{{0, "a"}, {1, 2, 1}}, {{1, "b"}, {1, 2, 1}}, {{2, "c"}, {1, 2, 1}}}};
}

Config two_boundaries(const std::vector<std::string>& more) {
  std::vector<std::string> all = {
      "model.cuts=[\"layer1\", \"layer2\"]",
      "data.batch_size=20",
      "pipeline.micro_batches=1",
      "compression.activations.codec=auto",
      "compression.gradients.codec=auto",
      R"(compression.boundaries=[{name="layer2", activations={codec="quant:4"}, gradients={codec="quant:8"}}])",
      R"(compression.auto.ladder=["none", "quant:2"])"};
  all.insert(all.end(), more.begin(), more.end());
  return config_with(all);
}

TEST(CodecChooser, OneByHandStaysAndTheOthersAreChosenForTheNetwork) {
  SingleProcessGroup group;
  const auto slow = codec_chooser(two_boundaries(
      {R"(networks=[{name="slow", bandwidth="8kbps", latency="20ms"}])", "compression.auto.network=slow"}));
  const CodecChoice choice = slow(facts(), group);
  ASSERT_EQ(choice.boundaries.size(), 2U);
  const auto& [layer1, layer2] = std::tie(choice.boundaries[0], choice.boundaries[1]);
  EXPECT_EQ(layer1.boundary, "layer1");
  EXPECT_EQ(layer1.activations.codec, "quant:2");
  EXPECT_EQ(layer1.activations.relative_error, 0.1);
  EXPECT_EQ(layer1.activations.link.bytes_per_second, 1000);
  EXPECT_EQ(layer1.gradients.link.latency_seconds, 0.02);
  EXPECT_EQ(layer2.activations.codec, "quant:4");
  EXPECT_EQ(layer2.gradients.codec, "quant:8");
  EXPECT_EQ(layer2.gradients.relative_error, 0.3);
  // A batch of 20 has messages twice as large as the ones of 10 rows: 0.2 s and 1 s of wire each way, 0.02 s of
  // latency, and three stages of 3 s.
  EXPECT_NEAR(choice.step_seconds.value(), 9 + 2 * (0.2 + 1) + 4 * 0.02, 1e-9);
  EXPECT_DOUBLE_EQ(choice.step_factor.value(), std::pow(0.99, -2) * std::pow(0.98, -2) * std::pow(1.01, 0.25));
  EXPECT_THAT(layer1.gradients.cosines, ElementsAre(Pair("none", 1), Pair("quant:2", 0.98)));
  EXPECT_TRUE(layer1.activations.cosines.empty());
  EXPECT_TRUE(layer2.gradients.cosines.empty());
}

TEST(CodecChooser, WithoutALimitTheMildestIsChosen) {
  SingleProcessGroup group;
  const CodecChoice choice = codec_chooser(two_boundaries({}))(facts(), group);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "none");
  EXPECT_EQ(choice.boundaries[0].gradients.codec, "none");
  EXPECT_FALSE(choice.boundaries[0].activations.link.bytes_per_second);
}

TEST(CodecChooser, GradientsThatWouldTurnTooFarStayMilder) {
  SingleProcessGroup group;
  ChoiceFacts mine = facts();
  mine.channels[1].trials[1].cosine = 0.8;
  const CodecChoice choice = codec_chooser(two_boundaries({"pipeline.link=8kbps"}))(mine, group);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:2");
  EXPECT_EQ(choice.boundaries[0].gradients.codec, "none");
}

TEST(CodecChooser, TheEmulatedLinkOfTheRunIsOneToChooseFor) {
  SingleProcessGroup group;
  const CodecChoice choice = codec_chooser(two_boundaries({"pipeline.link=8kbps"}))(facts(), group);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:2");
}

TEST(CodecChooser, LinksAreKnownToBeNoLimitInOneProcessOrByTheirName) {
  const std::string networks =
      R"(networks=[{name="slow", bandwidth="8kbps"}, {name="near", bandwidth="unlimited", latency="20ms"}])";
  const auto known = [&](int processes, const std::vector<std::string>& keys) {
    std::vector<std::string> all = {networks};
    all.insert(all.end(), keys.begin(), keys.end());
    return links_are_no_limit(two_boundaries(all), processes);
  };
  EXPECT_TRUE(known(1, {}));
  EXPECT_FALSE(known(3, {})) << "these are measured";
  EXPECT_TRUE(known(3, {"compression.auto.network=near"}));
  EXPECT_FALSE(known(1, {"compression.auto.network=slow"}));
  EXPECT_FALSE(known(1, {"pipeline.link=8kbps"}));
}

TEST(CodecChooser, ABudgetDecidesByTheErrorsAlone) {
  SingleProcessGroup group;
  const auto choose = [&](const char* budget) {
    return codec_chooser(two_boundaries({std::string("compression.auto.budget=") + budget}))(facts(), group);
  };
  EXPECT_EQ(choose("0.05").boundaries[0].activations.codec, "none");
  EXPECT_EQ(choose("0.1").boundaries[0].activations.codec, "quant:2");
  EXPECT_FALSE(choose("0.1").step_seconds);
  EXPECT_TRUE(choose("0.1").boundaries[0].gradients.cosines.empty());
}

}  // namespace
}  // namespace strait
