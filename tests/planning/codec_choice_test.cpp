#include "strait/planning/codec_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "strait/base/error.h"
#include "tests/planning/config_with.h"

namespace strait {
namespace {

using test::config_with;
using testing::ElementsAre;

CodecTrial trial(double bytes, double error, double encode_seconds = 0) {
  return {.bytes = bytes, .encode_seconds = encode_seconds, .relative_error = error};
}

TEST(StepFactor, IsOneWithoutErrorsAndNeverEndsWithAllLost) {
  const std::vector<BoundaryTrials> boundaries(3, {{trial(1, 0), trial(1, 1)}, {trial(1, 0), trial(1, 1.2)}});
  const auto factor = [&](std::vector<BoundaryRungs> rungs) { return step_factor(boundaries, rungs); };
  EXPECT_EQ(factor({{0, 0}, {0, 0}, {0, 0}}), 1);
  EXPECT_EQ(factor({{0, 0}, {1, 0}, {0, 0}}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(factor({{0, 0}, {0, 0}, {0, 1}}), std::numeric_limits<double>::infinity());
  EXPECT_EQ(step_factor({}, {}), 1);
}

TEST(StepFactor, IsAMeanOfBoundariesInWhichActivationsCountForMore) {
  const std::vector<BoundaryTrials> boundaries(2, {{trial(1, 0), trial(1, 0.6)}, {trial(1, 0), trial(1, 0.6)}});
  const std::vector<BoundaryRungs> forward = {{1, 0}, {1, 0}};
  const std::vector<BoundaryRungs> backward = {{0, 1}, {0, 1}};
  const std::vector<BoundaryRungs> at_one = {{1, 0}, {0, 0}};
  EXPECT_DOUBLE_EQ(step_factor(boundaries, forward), std::pow(1 - 0.36, -0.9));
  EXPECT_DOUBLE_EQ(step_factor(boundaries, backward), std::pow(1 - 0.36, -0.35));
  EXPECT_DOUBLE_EQ(step_factor(boundaries, at_one), std::pow(1 - 0.36, -0.45));
}

TEST(WithinBudget, TakesTheFewestBytesBelowTheBoundOrElseTheLeastError) {
  const std::vector<BoundaryTrials> boundaries = {
      {{trial(100, 0), trial(50, 0.01), trial(20, 0.3), trial(25, 0.02)}, {trial(100, 0), trial(20, 0.021)}},
      {{trial(20, 0.4), trial(50, 0.03)}, {trial(7, 0.02)}}};
  EXPECT_THAT(within_budget(boundaries, 0.02), ElementsAre(BoundaryRungs{3, 0}, BoundaryRungs{1, 0}));
  EXPECT_THAT(within_budget(boundaries, 0.5), ElementsAre(BoundaryRungs{2, 1}, BoundaryRungs{0, 0}));
}

/// Four stages of 1 s forward and 2 s back.
class Fastest : public testing::Test {
 protected:
  static BoundaryLink link(double bytes_per_second) {
    const LinkRate rate{.bytes_per_second = bytes_per_second};
    return {rate, rate};
  }

  FastestCodecs find(const std::vector<BoundaryTrials>& boundaries,
                     const std::vector<BoundaryLink>& links) const {
    return fastest_codecs(predictor_, stages_, boundaries, links);
  }

  /// The time of these, by the predictor alone.
  double seconds(const std::vector<BoundaryTrials>& boundaries, const std::vector<BoundaryRungs>& rungs,
                 const std::vector<BoundaryLink>& links) const {
    CandidateCosts costs;
    for (size_t i = 0; i < rungs.size(); ++i) {
      const auto& forward = boundaries[i].activations[rungs[i].activations];
      const auto& backward = boundaries[i].gradients[rungs[i].gradients];
      costs.activation.push_back({forward.bytes, forward.encode_seconds, forward.decode_seconds});
      costs.gradient.push_back({backward.bytes, backward.encode_seconds, backward.decode_seconds});
    }
    const Measurement measurement{.stages = stages_, .candidates = {costs}};
    return predictor_.predict(measurement, {}, links).steps.front().seconds;
  }

  const std::vector<StageSeconds> stages_ = std::vector<StageSeconds>(4, {"stage", 1, 2});
  const Predictor predictor_{config_with({}), 4, CodecPlace::own_threads};
  const std::vector<CodecTrial> ladder_ = {trial(100, 0), trial(50, 0.01), trial(12, 0.1), trial(5, 0.5)};
  const std::vector<BoundaryTrials> boundaries_ = std::vector<BoundaryTrials>(3, {ladder_, ladder_});
};

TEST_F(Fastest, NothingIsCompressedWhereLinksAreNoLimit) {
  const auto found = find(boundaries_, std::vector<BoundaryLink>(3));
  EXPECT_THAT(found.rungs, ElementsAre(BoundaryRungs{}, BoundaryRungs{}, BoundaryRungs{}));
  EXPECT_DOUBLE_EQ(found.step_seconds, 12);
  EXPECT_EQ(found.step_factor, 1);
}

TEST_F(Fastest, TheSlowBoundaryAloneIsCompressed) {
  std::vector<BoundaryLink> links(3);
  links[1] = link(10);
  const auto found = find(boundaries_, links);
  EXPECT_EQ(found.rungs[0], BoundaryRungs{});
  EXPECT_EQ(found.rungs[2], BoundaryRungs{});
  EXPECT_GE(found.rungs[1].activations, 2U);
  EXPECT_GE(found.rungs[1].gradients, 2U);
}

TEST_F(Fastest, OneSlowWayAloneIsCompressed) {
  std::vector<BoundaryLink> links(3);
  links[0].gradients.bytes_per_second = 10;
  const auto found = find(boundaries_, links);
  EXPECT_EQ(found.rungs[0].activations, 0U);
  EXPECT_GE(found.rungs[0].gradients, 2U);
}

TEST_F(Fastest, ASlowCodecIsNotTakenForItsBytes) {
  const std::vector<CodecTrial> ladder = {trial(100, 0),
                                          trial(10, 0, 20)};  // 9 s of wire saved by 20 s of work
  const std::vector<BoundaryTrials> boundaries(3, {ladder, ladder});
  const auto found = find(boundaries, std::vector<BoundaryLink>(3, link(10)));
  EXPECT_THAT(found.rungs, ElementsAre(BoundaryRungs{}, BoundaryRungs{}, BoundaryRungs{}));
}

// Against all choices that there are, 4^6, over links of several rates.
TEST_F(Fastest, IsWithinAPercentOfTheBestOfAll) {
  for (const auto& rates :
       std::vector<std::vector<double>>{{10, 10, 10}, {2, 10, 50}, {30, 5, 5}, {100, 100, 1}}) {
    std::vector<BoundaryLink> links;
    for (const double rate : rates) links.push_back(link(rate));
    double best = std::numeric_limits<double>::infinity();
    const size_t n = ladder_.size();
    for (size_t all = 0; all < n * n * n * n * n * n; ++all) {
      std::vector<BoundaryRungs> rungs(3);
      size_t rest = all;
      for (auto& [activations, gradients] : rungs) {
        activations = rest % n;
        gradients = rest / n % n;
        rest /= n * n;
      }
      best = std::min(best, seconds(boundaries_, rungs, links) * step_factor(boundaries_, rungs));
    }
    const auto found = find(boundaries_, links);
    EXPECT_DOUBLE_EQ(found.step_seconds, seconds(boundaries_, found.rungs, links));
    EXPECT_LE(found.step_seconds * found.step_factor, 1.01 * best);
  }
}

/// What one process with everything tells of itself: two boundaries, the first of which is chosen.
ChoiceFacts facts() {
  const std::vector<CodecTrial> ladder = {trial(1000, 0), trial(100, 0.1)};
  return {.channels = {{"layer1", Direction::activation, 10, ladder},
                       {"layer1", Direction::gradient, 10, ladder},
                       {"layer2", Direction::activation, 10, {trial(500, 0.2)}},
                       {"layer2", Direction::gradient, 10, {trial(500, 0.3)}}},
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
  EXPECT_GT(choice.step_factor.value(), 1);
}

TEST(CodecChooser, WithoutALimitTheMildestIsChosen) {
  SingleProcessGroup group;
  const CodecChoice choice = codec_chooser(two_boundaries({}))(facts(), group);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "none");
  EXPECT_EQ(choice.boundaries[0].gradients.codec, "none");
  EXPECT_FALSE(choice.boundaries[0].activations.link.bytes_per_second);
}

TEST(CodecChooser, TheEmulatedLinkOfTheRunIsOneToChooseFor) {
  SingleProcessGroup group;
  const CodecChoice choice = codec_chooser(two_boundaries({"pipeline.link=8kbps"}))(facts(), group);
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:2");
}

TEST(CodecChooser, ABudgetDecidesByTheErrorsAlone) {
  SingleProcessGroup group;
  const auto choose = [&](const char* budget) {
    return codec_chooser(two_boundaries({std::string("compression.auto.budget=") + budget}))(facts(), group);
  };
  EXPECT_EQ(choose("0.05").boundaries[0].activations.codec, "none");
  EXPECT_EQ(choose("0.1").boundaries[0].activations.codec, "quant:2");
  EXPECT_FALSE(choose("0.1").step_seconds);
}

}  // namespace
}  // namespace strait
