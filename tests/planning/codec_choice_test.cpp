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

  /// Of all boundaries with these, for the batches of a trial.
  double trial_seconds(size_t activations, size_t gradients, const std::vector<BoundaryLink>& links) const {
    return 4 * seconds(boundaries_, std::vector<BoundaryRungs>(3, {activations, gradients}), links);
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
  const double codecs = trial_seconds(3, 1, links) + trial_seconds(1, 3, links);
  EXPECT_DOUBLE_EQ(found.trial_seconds, codecs + trial_seconds(1, 1, links));
  TrialTerms compared = terms(1000000);
  compared.compared = true;
  EXPECT_DOUBLE_EQ(weigh(links, compared).trial_seconds, codecs);
}

TEST_F(WorthMeasuring, WhatCannotBeRepaidIsLeftOut) {
  const std::vector<BoundaryLink> links(3, link(2));
  const auto found = weigh(links, terms(1));
  EXPECT_THAT(found.rungs, testing::Each(BoundaryRungs{1, 1}));
  EXPECT_EQ(found.trial_seconds, 0);
}

// Whatever is taken without being known repays its trials, each codec its own and all together the reference's.
TEST_F(WorthMeasuring, EachCodecRepaysItsTrials) {
  bool some = false;
  bool all = false;
  for (const auto& rates : std::vector<std::vector<double>>{{2, 2, 2}, {2, 40, 40}, {30, 5, 5}, {20, 20, 1}}) {
    std::vector<BoundaryLink> links;
    for (const double rate : rates)
      links.push_back({{.bytes_per_second = rate}, {.bytes_per_second = rate / 3}});
    for (const int64_t ahead : {1, 2, 4, 8, 16, 32, 64, 256, 1024}) {
      SCOPED_TRACE(testing::Message() << testing::PrintToString(rates) << ", " << ahead);
      const auto found = weigh(links, terms(ahead));
      LadderCosines used = cosines({1.0, 1.0, 0, 0}, {1.0, 1.0, 0, 0});
      for (const auto& [activations, gradients] : found.rungs)
        used.activations[activations] = used.gradients[gradients] = 1;
      const auto gain_of = [&](const LadderCosines& without) {
        const auto other = fastest_codecs(predictor_, stages_, boundaries_, links, without);
        const double lost = other.step_seconds * other.step_factor - found.step_seconds * found.step_factor;
        return lost * static_cast<double>(ahead);
      };
      double cost = 0;
      size_t trials = 0;
      for (const Direction direction : {Direction::activation, Direction::gradient}) {
        for (const size_t rung : {2, 3}) {
          if (used.of(direction)[rung] == 0) continue;
          const bool forward = direction == Direction::activation;
          const double own = trial_seconds(forward ? rung : 1, forward ? 1 : rung, links);
          LadderCosines without = used;
          without.of(direction)[rung] = 0;
          EXPECT_GE(gain_of(without), own);
          cost += own;
          ++trials;
        }
      }
      if (trials > 0) {
        cost += trial_seconds(1, 1, links);
        EXPECT_GE(gain_of(cosines({1.0, 1.0, 0, 0}, {1.0, 1.0, 0, 0})), cost);
      }
      EXPECT_DOUBLE_EQ(found.trial_seconds, cost);
      some = some || trials == 1 || trials == 3;
      all = all || trials > 1;
    }
  }
  EXPECT_TRUE(some && all) << "cases of both kinds are among these";
}

}  // namespace
}  // namespace strait
