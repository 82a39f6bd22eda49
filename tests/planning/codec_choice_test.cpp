#include "strait/planning/codec_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "strait/base/error.h"
#include "tests/planning/config_with.h"

namespace strait {
namespace {

using test::config_with;
using testing::ElementsAre;

CodecTrial trial(double bytes, double error, double encode_seconds = 0) {
  return {.bytes = bytes, .encode_seconds = encode_seconds, .relative_error = error};
}

using Known = std::vector<std::optional<double>>;

LadderCosines cosines(Known activations, Known gradients) {
  return {.activations = std::move(activations), .gradients = std::move(gradients)};
}

TEST(StepFactor, IsAPowerOfTheProductOfTheCosinesAndOfTheNoise) {
  const std::vector<BoundaryTrials> boundaries(2, {{trial(1, 0), trial(1, 0.6)}, {trial(1, 0), trial(1, 0.3)}});
  const auto factor = [&](std::vector<BoundaryRungs> rungs, const LadderCosines& known) {
    return step_factor(boundaries, rungs, known);
  };
  const LadderCosines all = cosines({1.0, 0.95}, {1.0, 0.92});
  EXPECT_EQ(factor({{0, 0}, {0, 0}}, all), 1);
  const double noise_forward = std::pow(1 + 0.36, 0.25);
  const double noise_backward = std::pow(1 + 0.09, 0.25);
  EXPECT_DOUBLE_EQ(factor({{1, 0}, {1, 0}}, all), noise_forward * std::pow(0.95, -2));
  EXPECT_DOUBLE_EQ(factor({{0, 1}, {0, 1}}, all), noise_backward * std::pow(0.92, -2));
  EXPECT_DOUBLE_EQ(factor({{1, 1}, {1, 1}}, all), noise_forward * noise_backward * std::pow(0.95 * 0.92, -2));
  EXPECT_DOUBLE_EQ(factor({{1, 0}, {1, 0}}, cosines({{}, {}}, {{}, {}})), noise_forward)
      << "what is not known turns nothing";
  EXPECT_EQ(factor({{0, 1}, {0, 0}}, cosines({1.0, 1.0}, {1.0, 0.0})), std::numeric_limits<double>::infinity());
  EXPECT_EQ(step_factor({}, {}, all), 1);
}

TEST(StepFactor, BoundariesHaveSharesByTheSquaresOfTheirErrors) {
  const std::vector<BoundaryTrials> boundaries = {{{trial(1, 0), trial(1, 0.1)}, {trial(1, 0), trial(1, 0)}},
                                                  {{trial(1, 0), trial(1, 0.2)}, {trial(1, 0), trial(1, 0)}},
                                                  {{trial(1, 0.9)}, {trial(1, 0.9)}}};  // by hand
  const auto factor = [&](std::vector<BoundaryRungs> rungs) {
    return step_factor(boundaries, rungs, cosines({1.0, 0.95}, {1.0, 0.95}));
  };
  const auto noise = [](double square) { return std::pow(1 + square, 0.25 / 2); };  // of two boundaries
  EXPECT_DOUBLE_EQ(factor({{1, 0}, {0, 0}, {0, 0}}), noise(0.01) * std::pow(0.95, -0.4));
  EXPECT_DOUBLE_EQ(factor({{0, 0}, {1, 0}, {0, 0}}), noise(0.04) * std::pow(0.95, -1.6));
  EXPECT_DOUBLE_EQ(factor({{1, 0}, {1, 0}, {0, 0}}), noise(0.01) * noise(0.04) * std::pow(0.95, -2));
  EXPECT_EQ(factor({{0, 1}, {0, 1}, {0, 0}}), 1) << "without an error there is no share";
}

TEST(StepFactor, WhatCannotBeSentIsNeverTaken) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const std::vector<BoundaryTrials> boundaries = {
      {{trial(1, 0), trial(1, kInfinite)}, {trial(1, 0), trial(1, 0)}},
      {{trial(1, 0), trial(1, 0.1)}, {trial(1, 0), trial(1, 0)}}};
  const LadderCosines known = cosines({1.0, 1.0}, {1.0, 1.0});
  const std::vector<BoundaryRungs> there = {{1, 0}, {0, 0}};
  const std::vector<BoundaryRungs> elsewhere = {{0, 0}, {1, 0}};
  EXPECT_EQ(step_factor(boundaries, there, known), kInfinite);
  EXPECT_DOUBLE_EQ(step_factor(boundaries, elsewhere, known), std::pow(1.01, 0.25 / 2));
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
    return fastest_codecs(predictor_, stages_, boundaries, links, cosines_);
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
  const LadderCosines cosines_ = cosines({1.0, 0.999, 0.99, 0.92}, {1.0, 0.999, 0.98, 0.91});
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

// The search comes there from the strongest codec both ways; with the milder one a step is 0.35% faster.
TEST(FastestCodecs, OfCodecsAboutAsFastTheMilderIsTaken) {
  const Predictor predictor{config_with({"data.batch_size=2", "pipeline.micro_batches=2"}), 2,
                            CodecPlace::own_threads};
  const std::vector<BoundaryTrials> boundaries = {
      {{trial(100, 0, 0.1), trial(50, 0.01, 0.5), trial(12, 0.1, 0.4)},
       {trial(100, 0, 0.3), trial(50, 0.01, 0.3), trial(12, 0.1, 0.5)}}};
  const std::vector<BoundaryLink> links = {{{.bytes_per_second = 180}, {.bytes_per_second = 200}}};
  const auto found = fastest_codecs(predictor, std::vector<StageSeconds>(2, {"stage", 1, 2}), boundaries, links,
                                    cosines({{}, {}, {}}, {{}, {}, {}}));
  EXPECT_THAT(found.rungs, ElementsAre(BoundaryRungs{2, 1}));
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
      best = std::min(best, seconds(boundaries_, rungs, links) * step_factor(boundaries_, rungs, cosines_));
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
          .stages = {{{0, "a"}, {1, 2, 1}}, {{1, "b"}, {1, 2, 1}}, {{2, "c"}, {1, 2, 1}}},
          .cosines = cosines({{}, {}}, {{}, {}})};
}

/// The same for every codec but the first, with which nothing is lost.
MeasureCosine with_cosine(double lost = 0.98) {
  return [lost](Direction, size_t rung) { return rung == 0 ? 1 : lost; };
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
    if (channel.trials.size() == 2) channel.trials.insert(channel.trials.begin() + 1, trial(250, 0.01));
  }
  mine.cosines = cosines({{}, {}, {}}, {{}, {}, {}});
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

  mine.cosines = cosines({{}, 1, 0}, {{}, 1, 0});
  choice = choose(1);
  EXPECT_TRUE(asked.empty()) << "all are known";
  EXPECT_EQ(choice.boundaries[0].activations.codec, "quant:8");
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
