#include "strait/planning/codec_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/planning/config_with.h"

namespace strait {
namespace {

using test::config_with;
using testing::ElementsAre;

CodecTrial trial(double bytes, double error, double encode_seconds = 0, double cosine = 1) {
  return {.bytes = bytes, .encode_seconds = encode_seconds, .relative_error = error, .cosine = cosine};
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Two boundaries that are chosen and one by hand; the cosine of activations says nothing.
TEST(StepFactor, IsTheGeometricMeanOfWhatBoundariesCost) {
  const BoundaryTrials chosen = {{trial(1, 0), trial(1, 0.6, 0, 0.3)}, {trial(1, 0), trial(1, 0.3, 0, 0.92)}};
  const std::vector<BoundaryTrials> boundaries = {chosen, {{trial(1, 0.9)}, {trial(1, 0.9)}}, chosen};
  const auto factor = [&](BoundaryRungs first, BoundaryRungs last) {
    return step_factor(boundaries, std::vector<BoundaryRungs>{first, {0, 0}, last});
  };
  const double forward = 1 / ((1 - 0.36) * (1 - 0.36));
  const double backward = std::pow(1 + 0.09, 0.25) / (0.92 * 0.92);
  EXPECT_EQ(factor({0, 0}, {0, 0}), 1);
  EXPECT_DOUBLE_EQ(factor({1, 0}, {1, 0}), forward);
  EXPECT_DOUBLE_EQ(factor({0, 1}, {0, 1}), backward);
  EXPECT_DOUBLE_EQ(factor({1, 1}, {1, 1}), forward * backward);
  EXPECT_DOUBLE_EQ(factor({1, 0}, {0, 1}), std::sqrt(forward * backward));
  EXPECT_EQ(step_factor({}, {}), 1);
}

TEST(StepFactor, WhatTurnsOrLosesTooMuchIsNeverTaken) {
  const auto factor_of = [](const CodecTrial& activations, const CodecTrial& gradients) {
    const std::vector<BoundaryTrials> boundaries(2, {{trial(1, 0), activations}, {trial(1, 0), gradients}});
    return step_factor(boundaries, std::vector<BoundaryRungs>{{0, 0}, {1, 1}});
  };
  EXPECT_LT(factor_of(trial(1, 0.99), trial(1, 0.9, 0, 0.85)), kInfinite);
  EXPECT_EQ(factor_of(trial(1, 0), trial(1, 0.1, 0, 0.84)), kInfinite);
  EXPECT_EQ(factor_of(trial(1, 0), trial(1, kInfinite)), kInfinite);
  EXPECT_EQ(factor_of(trial(1, 1), trial(1, 0)), kInfinite);
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
  const std::vector<CodecTrial> ladder_ = {trial(100, 0), trial(50, 0.01, 0, 0.999), trial(12, 0.1, 0, 0.98),
                                           trial(5, 0.5, 0, 0.91)};
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

TEST_F(Fastest, WhereNoCodecMayBeTakenTheMildestIsAndOthersAreChosenAsWithoutIt) {
  std::vector<BoundaryTrials> boundaries = boundaries_;
  for (auto& each : boundaries[1].gradients) each.cosine = 0.5;
  const std::vector<BoundaryLink> links(3, link(2));
  const auto found = find(boundaries, links);
  EXPECT_EQ(found.rungs[1].gradients, 0U);
  boundaries[1].gradients.resize(1);  // by hand
  const auto by_hand = find(boundaries, links);
  EXPECT_EQ(found.rungs, by_hand.rungs);
  EXPECT_DOUBLE_EQ(found.step_factor, by_hand.step_factor);
  EXPECT_GE(found.rungs[0].activations, 2U);
}

// The search comes there from the strongest codec both ways; with the milder one a step is 0.35% faster.
TEST(FastestCodecs, OfCodecsAboutAsFastTheMilderIsTaken) {
  const Predictor predictor{config_with({"data.batch_size=2", "pipeline.micro_batches=2"}), 2,
                            CodecPlace::own_threads};
  const std::vector<BoundaryTrials> boundaries = {
      {{trial(100, 0, 0.1), trial(50, 0.0035, 0.5), trial(12, 0.035, 0.4)},
       {trial(100, 0, 0.3), trial(50, 0.01, 0.3), trial(12, 0.1, 0.5)}}};
  const std::vector<BoundaryLink> links = {{{.bytes_per_second = 180}, {.bytes_per_second = 200}}};
  const auto found =
      fastest_codecs(predictor, std::vector<StageSeconds>(2, {"stage", 1, 2}), boundaries, links);
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
      best = std::min(best, seconds(boundaries_, rungs, links) * step_factor(boundaries_, rungs));
    }
    const auto found = find(boundaries_, links);
    EXPECT_DOUBLE_EQ(found.step_seconds, seconds(boundaries_, found.rungs, links));
    EXPECT_LE(found.step_seconds * found.step_factor, 1.01 * best);
  }
}

TEST_F(Fastest, GradientsAreWorthWatchingWhereStrongCodecsWouldGainATenth) {
  const auto worth = [&](double rate) {
    return is_worth_watching(predictor_, stages_, boundaries_, std::vector<BoundaryLink>(3, link(rate)));
  };
  EXPECT_TRUE(worth(2));
  EXPECT_FALSE(worth(1000)) << "nothing is waited for";
  std::vector<BoundaryLink> forward_alone(3);
  for (auto& each : forward_alone) each.activations.bytes_per_second = 2;
  EXPECT_FALSE(is_worth_watching(predictor_, stages_, boundaries_, forward_alone));
  const std::vector<BoundaryTrials> one_codec(3, {{trial(5, 0.5)}, {trial(5, 0.5)}});
  EXPECT_FALSE(is_worth_watching(predictor_, stages_, one_codec, std::vector<BoundaryLink>(3, link(2))));
  std::vector<BoundaryTrials> small_errors = boundaries_;
  for (auto& each : small_errors) each.gradients.pop_back();
  EXPECT_FALSE(is_worth_watching(predictor_, stages_, small_errors, std::vector<BoundaryLink>(3, link(2))));
}

}  // namespace
}  // namespace strait
