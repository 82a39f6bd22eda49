#include "strait/planning/codec_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

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

/// With the two strongest codecs of the ladder not known, of which the reference is the second.
class WorthMeasuring : public Fastest {
 protected:
  FastestCodecs weigh(const std::vector<BoundaryLink>& links, const TrialTerms& terms) const {
    return fastest_worth_measuring(predictor_, stages_, boundaries_, links, known_, terms);
  }

  /// Of all boundaries with this both ways, for the batches of a trial.
  double trial_seconds(size_t rung, const std::vector<BoundaryLink>& links) const {
    return 4 * seconds(boundaries_, std::vector<BoundaryRungs>(3, {rung, rung}), links);
  }

  static TrialTerms terms(int64_t batches_ahead) {
    return {.reference = 1, .batches = 4, .batches_ahead = batches_ahead};
  }

  const LadderCosines known_ = cosines({1.0, 1.0, {}, {}}, {1.0, 1.0, {}, {}});
};

TEST_F(WorthMeasuring, WhatIsNotKnownIsFreeForALongTraining) {
  const std::vector<BoundaryLink> links(3, link(2));
  const auto found = weigh(links, terms(1000000));
  EXPECT_EQ(found.rungs, fastest_codecs(predictor_, stages_, boundaries_, links, known_).rungs);
  EXPECT_THAT(found.rungs, testing::Each(BoundaryRungs{3, 3}));
  EXPECT_DOUBLE_EQ(found.trial_seconds.value(), trial_seconds(1, links) + trial_seconds(3, links));
  TrialTerms compared = terms(1000000);
  compared.compared = true;
  EXPECT_DOUBLE_EQ(weigh(links, compared).trial_seconds.value(), trial_seconds(3, links));
}

TEST_F(WorthMeasuring, WhatIsKnownIsNotMeasuredAgain) {
  const auto found = fastest_worth_measuring(predictor_, stages_, boundaries_,
                                             std::vector<BoundaryLink>(3, link(2)), cosines_, terms(1000000));
  EXPECT_FALSE(found.trial_seconds);
}

// A choice is measured from that number of batches on which repays its trial, and what is known is taken
// before.
TEST_F(WorthMeasuring, AChoiceRepaysItsTrial) {
  for (const auto& rates : std::vector<std::vector<double>>{{2, 2, 2}, {2, 40, 40}, {30, 5, 5}, {20, 20, 1}}) {
    std::vector<BoundaryLink> links;
    for (const double rate : rates)
      links.push_back({{.bytes_per_second = rate}, {.bytes_per_second = rate / 3}});
    const auto total = [](const FastestCodecs& codecs) { return codecs.step_seconds * codecs.step_factor; };
    const auto free = fastest_codecs(predictor_, stages_, boundaries_, links, known_);
    const auto without =
        fastest_codecs(predictor_, stages_, boundaries_, links, cosines({1.0, 1.0, 0, 0}, {1.0, 1.0, 0, 0}));
    const double trial = trial_seconds(1, links) + 4 * free.step_seconds;
    const double least = trial / (total(without) - total(free));
    const auto below = static_cast<int64_t>(std::floor(least));
    EXPECT_EQ(weigh(links, terms(below)).rungs, without.rungs) << testing::PrintToString(rates);
    EXPECT_FALSE(weigh(links, terms(below)).trial_seconds);
    EXPECT_EQ(weigh(links, terms(below + 1)).rungs, free.rungs);
    EXPECT_DOUBLE_EQ(weigh(links, terms(below + 1)).trial_seconds.value(), trial);
  }
}

/// Two boundaries with a ladder of three, of which the first turns nothing.
class AddMeasured : public testing::Test {
 protected:
  /// What is known behind a measurement with these.
  LadderCosines after(std::vector<BoundaryRungs> rungs, double cosine, LadderCosines known) const {
    add_measured(boundaries_, rungs, cosine, known);
    return known;
  }

  const std::vector<BoundaryTrials> boundaries_ = {
      {{trial(3, 0), trial(2, 0.1), trial(1, 0.6)}, {trial(3, 0), trial(2, 0.2), trial(1, 0.3)}},
      {{trial(3, 0), trial(2, 0.1), trial(1, 0.8)}, {trial(3, 0), trial(2, 0.2), trial(1, 0.4)}}};
  const LadderCosines nothing_ = cosines({1.0, {}, {}}, {1.0, {}, {}});
};

TEST_F(AddMeasured, CodecsHaveSharesByTheSquaresOfTheirErrors) {
  const LadderCosines known = after({{2, 1}, {2, 1}}, 0.9, nothing_);
  // 0.36 + 0.64 forward and twice 0.04 backward.
  EXPECT_DOUBLE_EQ(known.activations[2].value(), std::pow(0.9, 1 / 1.08));
  EXPECT_DOUBLE_EQ(known.gradients[1].value(), std::pow(0.9, 0.08 / 1.08));
  EXPECT_FALSE(known.activations[1] || known.gradients[2]) << "were not there";
  EXPECT_DOUBLE_EQ(step_factor(boundaries_, std::vector<BoundaryRungs>{{2, 1}, {2, 1}}, known),
                   std::pow(0.9, -2) * std::pow(1.36 * 1.64, 0.25 / 2) * std::pow(1.04, 0.25))
      << "of the choice itself it says what was measured";
}

TEST_F(AddMeasured, WhatIsKnownTakesItsPart) {
  LadderCosines known = after({{2, 1}, {2, 1}}, 0.9, cosines({1.0, {}, 0.95}, {1.0, {}, {}}));
  EXPECT_EQ(known.activations[2], 0.95);
  EXPECT_DOUBLE_EQ(known.gradients[1].value(), 0.9 / 0.95);
  known = after({{2, 1}, {2, 1}}, 0.97, cosines({1.0, {}, 0.95}, {1.0, {}, {}}));
  EXPECT_EQ(known.gradients[1], 1) << "better than was known";
}

TEST_F(AddMeasured, AtSomeBoundariesACodecShowsAPartOfWhatItDoes) {
  const LadderCosines known = after({{2, 0}, {1, 0}}, 0.9, nothing_);
  const double strong = 0.36 / 0.37;  // 0.01 at the other boundary, half of what that codec does
  EXPECT_DOUBLE_EQ(known.activations[2].value(), std::pow(std::pow(0.9, strong), 1 / 0.36));
  EXPECT_DOUBLE_EQ(known.activations[1].value(), std::pow(std::pow(0.9, 1 - strong), 1 / 0.5));
  EXPECT_DOUBLE_EQ(step_factor(boundaries_, std::vector<BoundaryRungs>{{1, 0}, {0, 0}}, known),
                   std::pow(0.9, -2 * (1 - strong)) * std::pow(1.01, 0.25 / 2));
}

TEST_F(AddMeasured, TheLargestErrorsAreBlamedForWhatMustNotBe) {
  LadderCosines known = after({{2, 2}, {2, 2}}, 0.5, nothing_);
  EXPECT_DOUBLE_EQ(known.activations[2].value(), 0.5);
  EXPECT_FALSE(known.gradients[2]) << "it may be good";
  known = after({{1, 2}, {1, 2}}, 0, known);
  EXPECT_EQ(known.gradients[2], 0);
  EXPECT_FALSE(known.activations[1]);
}

TEST_F(AddMeasured, WhatHasNoErrorTurnsNothing) {
  const LadderCosines known = after({{0, 0}, {0, 0}}, 0.99, cosines({{}, {}, {}}, {1.0, {}, {}}));
  EXPECT_EQ(known.activations[0], 1);
}

}  // namespace
}  // namespace strait
