#include "strait/report/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strait::report {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::Optional;

/// An epoch with accuracies and a boundary that carries `raw` bytes per step forward and backward at 8 and 4
/// to 1.
Epoch epoch(int number, double off, double on, double raw = 800) {
  Epoch result;
  result.number = number;
  result.steps = 10;
  result.seconds = 2;
  result.train_loss = 1.0 / (number + 1);
  result.off = {{"accuracy", off}, {"loss", 100 - off}};
  result.on = {{"accuracy", on}};
  result.boundaries = {{"a", {raw * 10, raw * 10 / 8, {}}, {raw * 10, raw * 10 / 4, {}}},
                       {"b", {raw * 5, raw * 5 / 8, {}}, {raw * 5, raw * 5 / 4, {}}}};
  return result;
}

Run run(Status status, std::vector<Epoch> epochs) {
  Run result;
  result.status = status;
  result.epochs = std::move(epochs);
  return result;
}

Metric accuracy() { return metric_of({}); }

TEST(LossOverSteps, IsTheMeanOverSeedsAtEachStep) {
  Epoch first = epoch(0, 50, 60);
  first.evaluations = {{10, {{"loss", 4}}, {{"loss", 8}}}, {20, {{"loss", 2}}, {}}};
  Epoch other = epoch(0, 50, 60);
  other.evaluations = {{10, {{"loss", 6}}, {{"loss", 8}}}};
  const Variant variant{"v", {}, {run(Status::done, {first, epoch(1, 50, 60)}), run(Status::done, {other})}};
  const Curve off = loss_over_steps(variant, &StepScores::off);
  ASSERT_EQ(off.size(), 2U);
  EXPECT_EQ(off[0].place, 10);
  EXPECT_THAT(off[0].value.mean, Optional(5.0));
  EXPECT_THAT(off[0].value.error, Optional(1.0));
  EXPECT_EQ(off[1].place, 20);
  EXPECT_THAT(off[1].value.mean, Optional(2.0));
  EXPECT_EQ(loss_over_steps(variant, &StepScores::on).size(), 1U) << "what is not measured is no point";
}

TEST(Estimate, IsTheMeanAndItsStandardError) {
  // Squared deviations of 2, 4, 9 from 5: 9 + 1 + 16 = 26; 26 / 2 / 3 = 13 / 3.
  const Estimate three = estimate({2, 4, 9});
  EXPECT_THAT(three.mean, Optional(5.0));
  EXPECT_NEAR(three.error.value(), 2.0816659994661326, 1e-15);
  EXPECT_EQ(three.count, 3);
}

TEST(Estimate, OneSeedHasNoStandardErrorAndNoSeedNoMean) {
  const Estimate one = estimate({7});
  EXPECT_THAT(one.mean, Optional(7.0));
  EXPECT_EQ(one.error, std::nullopt);
  EXPECT_EQ(estimate({}).mean, std::nullopt);
  EXPECT_EQ(estimate({}).count, 0);
  EXPECT_THAT(estimate({3, 3}).error, Optional(0.0));
  EXPECT_EQ(estimate({1e300, -1e300}).error, std::nullopt) << "past what a double holds";
}

TEST(Summary, LastIsTheLastEpochThatAllSeedsHaveScored) {
  Epoch unscored = epoch(2, 0, 0);
  unscored.off.clear();
  unscored.on.clear();
  unscored.evaluation = "live";
  Variant variant{"v",
                  {},
                  {run(Status::running, {epoch(0, 50, 60), epoch(1, 40, 70), unscored}),
                   run(Status::running, {epoch(0, 45, 80), epoch(1, 44, 72), epoch(2, 90, 90)})}};
  variant.runs[1].seed = 5;
  const Summary summary = summarise(variant, accuracy());
  EXPECT_THAT(summary.off.last.mean, Optional(42.0));
  EXPECT_THAT(summary.on.last.mean, Optional(71.0));
  EXPECT_EQ(summary.on.last.count, 2);
  EXPECT_EQ(evaluation_of(variant), "plain");
  EXPECT_THAT(last_of_seeds(variant, &Epoch::on),
              ElementsAre(FieldsAre(0, 1, testing::Pointee(ElementsAre(std::pair("accuracy", 70)))),
                          FieldsAre(5, 1, testing::Pointee(ElementsAre(std::pair("accuracy", 72))))));
}

TEST(Summary, BestIsOverEpochsAndSeedsOffAndOnEachForItself) {
  const Variant variant{"v",
                        {},
                        {run(Status::done, {epoch(0, 50, 60), epoch(1, 40, 70)}),
                         run(Status::done, {epoch(0, 45, 80), epoch(1, 44, 72)})}};
  const Summary summary = summarise(variant, accuracy());
  EXPECT_THAT(summary.off.best, Optional(50.0));
  EXPECT_THAT(summary.on.best, Optional(80.0));
  EXPECT_THAT(summary.off.last.mean, Optional(42.0));
  EXPECT_THAT(summary.off.last.error, Optional(2.0));  // deviations of 2: sqrt((4 + 4) / 1 / 2)
  EXPECT_THAT(summary.on.last.mean, Optional(71.0));
  EXPECT_THAT(summary.on.last.error, Optional(1.0));
  EXPECT_THAT(summary.seconds, Optional(4.0));
}

TEST(Summary, ALossIsBestWhereItIsLeast) {
  Variant variant{"v", {}, {run(Status::done, {epoch(0, 50, 0), epoch(1, 70, 0), epoch(2, 60, 0)})}};
  for (auto& measured : variant.runs[0].epochs) measured.off.erase("accuracy"), measured.on.clear();
  const Metric metric = metric_of({"t", "t", {variant}});
  EXPECT_EQ(metric.name, "loss");
  EXPECT_THAT(summarise(variant, metric).off.best, Optional(30.0));
  EXPECT_EQ(summarise(variant, metric).on.best, std::nullopt);
}

TEST(Summary, ASeedThatIsNotFiniteLeavesNoMean) {
  const auto text = [](double loss, Value perplexity) {
    Epoch measured = epoch(0, 0, 0);
    measured.off = {{"loss", loss}};
    if (perplexity) measured.off.emplace("perplexity", *perplexity);
    measured.on = {{"loss", 2}, {"perplexity", 8}};
    return run(Status::done, {measured});
  };
  const Variant variant{"v", {}, {text(2, 8), text(4, 60), text(900, std::nullopt)}};
  const Summary summary = summarise(variant, kPerplexity);
  EXPECT_EQ(summary.off.last.mean, std::nullopt) << "of the lucky seeds";
  EXPECT_EQ(summary.off.last.count, 0);
  EXPECT_THAT(summary.off.loss.mean, Optional(302.0));
  EXPECT_THAT(summary.off.best, Optional(8.0));
  EXPECT_EQ(summary.on.last.count, 3);
}

TEST(Summary, TextIsJudgedByItsPerplexity) {
  Variant variant{"v", {}, {run(Status::done, {epoch(0, 50, 0), epoch(1, 70, 0)})}};
  for (auto& measured : variant.runs[0].epochs) {
    measured.off.emplace("perplexity", measured.number == 0 ? 9 : 11);
    measured.on.emplace("loss", 3 + measured.number);
  }
  const Metric metric = metric_of({"t", "t", {variant}});
  EXPECT_EQ(metric.name, "perplexity");
  const Summary summary = summarise(variant, metric);
  EXPECT_THAT(summary.off.best, Optional(9.0));
  EXPECT_THAT(summary.off.last.mean, Optional(11.0));
  EXPECT_THAT(summary.off.loss.mean, Optional(30.0));
  EXPECT_THAT(summary.on.loss.mean, Optional(4.0));
  EXPECT_EQ(summary.on.last.mean, std::nullopt) << "was beyond all numbers";
}

TEST(Summary, ADivergedRunIsCountedButHasNoLastEpoch) {
  const Variant variant{"v",
                        {},
                        {run(Status::diverged, {epoch(0, 90, 10)}), run(Status::done, {epoch(0, 20, 30)}),
                         run(Status::waiting, {})}};
  const Summary summary = summarise(variant, accuracy());
  EXPECT_THAT(summary.off.best, Optional(90.0));
  EXPECT_THAT(summary.off.last.mean, Optional(20.0));
  EXPECT_EQ(summary.off.last.count, 1);
  EXPECT_THAT(summary.statuses, ElementsAre(FieldsAre(Status::done, 1), FieldsAre(Status::diverged, 1),
                                            FieldsAre(Status::waiting, 1)));
  const Variant lost{"v", {}, {run(Status::diverged, {epoch(0, 90, 10)})}};
  EXPECT_EQ(summarise(lost, accuracy()).off.last.mean, std::nullopt);
  EXPECT_EQ(summarise(lost, accuracy()).wire_bytes_per_step, std::nullopt);
}

TEST(Summary, RunsUnderWayMeetAtTheLastEpochThatAllHaveFinished) {
  const Variant variant{"v",
                        {},
                        {run(Status::running, {epoch(0, 10, 10), epoch(1, 30, 10)}),
                         run(Status::stopped, {epoch(0, 20, 10)}), run(Status::running, {})}};
  const Summary summary = summarise(variant, accuracy());
  EXPECT_THAT(summary.off.last.mean, Optional(15.0));
  EXPECT_EQ(summary.off.last.count, 2);
}

TEST(Summary, TrafficIsThatOfTheLastEpoch) {
  const Variant variant{"v", {}, {run(Status::done, {epoch(0, 1, 1, 1e6), epoch(1, 1, 1, 800)})}};
  const Summary summary = summarise(variant, accuracy());
  EXPECT_THAT(summary.ratio_activations, Optional(8.0));
  EXPECT_THAT(summary.ratio_gradients, Optional(4.0));
  EXPECT_THAT(summary.wire_bytes_per_step, Optional(100 + 200 + 50 + 100));
  EXPECT_THAT(summary.ratio, Optional(2400.0 / 450));
  EXPECT_THAT(step_traffic(variant),
              ElementsAre(FieldsAre("a", 800, 100, 800, 200), FieldsAre("b", 400, 50, 400, 100)));
}

TEST(Curve, IsTheMeanOverTheSeedsThatHaveTheEpoch) {
  const Variant variant{
      "v",
      {},
      {run(Status::done, {epoch(3, 10, 0), epoch(4, 20, 0)}), run(Status::diverged, {epoch(3, 14, 0)})}};
  const Curve points = curve(variant, [](const Epoch& epoch) { return find(epoch.off, "accuracy"); });
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].place, 4);
  EXPECT_THAT(points[0].value.mean, Optional(12.0));
  EXPECT_THAT(points[0].value.error, Optional(2.0));
  EXPECT_EQ(points[1].value.count, 1);
  EXPECT_EQ(points[1].value.error, std::nullopt);
  EXPECT_TRUE(curve(variant, [](const Epoch&) { return Value(); }).empty());
}

}  // namespace
}  // namespace strait::report
