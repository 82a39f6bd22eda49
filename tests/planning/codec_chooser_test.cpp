#include "strait/planning/codec_chooser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/planning/config_with.h"

namespace strait {
namespace {

using test::config_with;
using testing::ElementsAre;

/// What one process with everything tells of itself: two boundaries, the first of which is chosen.
ChoiceFacts facts() {
  const auto sends = [](double bytes, double error) {
    return CodecTrial{.bytes = bytes, .relative_error = error};
  };
  const std::vector<CodecTrial> ladder = {sends(1000, 0), sends(100, 0.1)};
  return {.channels = {{"layer1", Direction::activation, 10, ladder},
                       {"layer1", Direction::gradient, 10, ladder},
                       {"layer2", Direction::activation, 10, {sends(500, 0.2)}},
                       {"layer2", Direction::gradient, 10, {sends(500, 0.3)}}},
          .stages = {{{0, "a"}, {1, 2, 1}}, {{1, "b"}, {1, 2, 1}}, {{2, "c"}, {1, 2, 1}}},
          .cosines = {.activations = {1, {}}, .gradients = {1, {}}},
          .trial_terms = {.reference = 0, .batches = 4, .batches_ahead = 1000}};
}

/// The same for every codec.
MeasureCosine with_cosine(double lost = 0.98) {
  return [lost](Direction, size_t) { return lost; };
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
  const CodecChoice choice = slow(facts(), group, with_cosine());
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
  EXPECT_DOUBLE_EQ(choice.step_factor.value(), std::pow(0.98, -4) * std::pow(1.01, 0.5));
}

TEST(CodecChooser, WithoutALimitTheMildestIsChosen) {
  SingleProcessGroup group;
  const CodecChoice choice = codec_chooser(two_boundaries({}))(facts(), group, with_cosine());
  EXPECT_EQ(choice.boundaries[0].activations.codec, "none");
  EXPECT_EQ(choice.boundaries[0].gradients.codec, "none");
  EXPECT_FALSE(choice.boundaries[0].activations.link.bytes_per_second);
}

/// Asks for as few as it can: those of what it would choose if what it does not know were free.
TEST(CodecChooser, MeasuresTheCosinesThatItsChoiceRestsOnAndNoOthers) {
  SingleProcessGroup group;
  Config config = two_boundaries({"pipeline.link=1kbps"});
  config.compression.automatic.ladder = {"none", "quant:8", "quant:2"};
  ChoiceFacts mine = facts();
  for (auto& channel : mine.channels) {
    if (channel.trials.size() == 2)
      channel.trials.insert(channel.trials.begin() + 1, {.bytes = 250, .relative_error = 0.01});
  }
  mine.cosines = {.activations = {1, {}, {}}, .gradients = {1, {}, {}}};
  std::vector<std::pair<Direction, size_t>> asked;
  const auto choose = [&](double strongest) {
    asked.clear();
    return codec_chooser(config)(mine, group, [&](Direction direction, size_t rung) {
      asked.emplace_back(direction, rung);
      return rung == 2 ? strongest : 1;
    });
  };
  CodecChoice choice = choose(0.99);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:2");
  EXPECT_THAT(asked, ElementsAre(std::pair(Direction::activation, 2U), std::pair(Direction::gradient, 2U)));

  choice = choose(0);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:8");
  EXPECT_EQ(choice.boundaries[0].gradients.codec, "quant:8");
  EXPECT_EQ(asked.size(), 4U);

  mine.cosines = {.activations = {1, 1, 0}, .gradients = {1, 1, 0}};
  choice = choose(1);
  EXPECT_TRUE(asked.empty()) << "all are known";
  EXPECT_FALSE(choice.trial_seconds);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:8");
}

TEST(CodecChooser, MeasuresWhatRepaysItsTrials) {
  SingleProcessGroup group;
  ChoiceFacts mine = facts();
  int asked = 0;
  const auto choose = [&](int64_t batches_ahead) {
    asked = 0;
    mine.trial_terms.batches_ahead = batches_ahead;
    return codec_chooser(two_boundaries({"pipeline.link=8kbps"}))(mine, group, [&](Direction, size_t) {
      ++asked;
      return 0.98;
    });
  };
  CodecChoice choice = choose(10);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "none");
  EXPECT_FALSE(choice.trial_seconds);

  choice = choose(50);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:2");
  // Three stages of 3 s, 1 s of the second boundary each way, and of the first 2 s raw and 0.2 s with the
  // codec: four batches raw both ways, and four with the codec one way, each way.
  EXPECT_NEAR(choice.trial_seconds.value(), 4 * ((11 + 4) + 2 * (11 + 2.2)), 1e-9);
}

TEST(CodecChooser, TheEmulatedLinkOfTheRunIsOneToChooseFor) {
  SingleProcessGroup group;
  const CodecChoice choice =
      codec_chooser(two_boundaries({"pipeline.link=8kbps"}))(facts(), group, with_cosine());
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:2");
}

TEST(CodecChooser, ABudgetDecidesByTheErrorsAlone) {
  SingleProcessGroup group;
  const auto choose = [&](const char* budget) {
    return codec_chooser(two_boundaries({std::string("compression.auto.budget=") + budget}))(facts(), group,
                                                                                             with_cosine());
  };
  EXPECT_EQ(choose("0.05").boundaries[0].activations.codec, "none");
  EXPECT_EQ(choose("0.1").boundaries[0].activations.codec, "quant:2");
  EXPECT_FALSE(choose("0.1").step_seconds);
}

}  // namespace
}  // namespace strait
