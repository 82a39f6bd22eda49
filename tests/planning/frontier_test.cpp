#include "strait/planning/frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "strait/base/error.h"
#include "strait/planning/network_simulation.h"
#include "strait/run/metrics_json.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using testing::DoubleNear;
using testing::HasSubstr;

Config keys(const std::vector<std::string>& overrides = {}) {
  return parse_config("", "empty.toml", overrides);
}

/// 10 steps of the default network's four stages of 1 s forward and 2 s back, each message of that many
/// kilobytes, that of a tensor of 100.
EpochMetrics epoch_of(int number, double loss, uint64_t kilobytes, double accuracy = 50,
                      uint64_t messages = 10) {
  const Traffic traffic{.messages = messages, .raw_bytes = 1000000, .wire_bytes = 10000 * kilobytes};
  const Score score{.loss = loss, .metrics = {{"accuracy", accuracy}}};
  EpochMetrics epoch{.epoch = number,
                     .steps = 10,
                     .train = {},
                     .test = Evaluation{.off = score, .on = score},
                     .boundaries = {},
                     .stages = {}};
  epoch.samples_per_second = 1;
  epoch.test->off.loss += 1;
  for (const char* cut : {"layer1", "layer2", "layer3"}) epoch.boundaries.push_back({cut, traffic, traffic});
  epoch.stages.assign(4, {"stage", 1, 2});
  return epoch;
}

TrainedRun run_of(const std::vector<double>& losses, uint64_t kilobytes, const Config& config = keys()) {
  TrainedRun run{.origin = "run/metrics.jsonl", .config = config, .epochs = {}};
  for (const double loss : losses)
    run.epochs.push_back(epoch_of(static_cast<int>(run.epochs.size()), loss, kilobytes));
  return run;
}

/// 10 kB a second.
NetworkOptions slow(const NetworkOptions& other = {}) {
  NetworkOptions network = other;
  network.name = "slow";
  network.bandwidth = "80kbps";
  return network;
}

// A step: four stages of 3 s one after another, and six messages.
constexpr double kCompute = 12;

TEST(NetworkSimulation, AddsStagesAndMessagesOfAStep) {
  const NetworkSimulation simulation(keys());
  const auto seconds = [&](const NetworkOptions& network) {
    return simulation.step_seconds(epoch_of(0, 1, 20), network, "a");
  };
  EXPECT_DOUBLE_EQ(seconds({.name = "ideal"}), kCompute);
  EXPECT_DOUBLE_EQ(seconds(slow()), kCompute + 6 * 2);
  EXPECT_DOUBLE_EQ(seconds(slow({.latency = "500ms"})), kCompute + 6 * 2.5);
  EXPECT_DOUBLE_EQ(seconds(slow({.compute = 4})), kCompute / 4 + 6 * 2);
  EXPECT_DOUBLE_EQ(seconds(slow({.compute = 4, .stage_seconds = {1, 2, 3, 4}})), 10 + 6 * 2);
}

TEST(NetworkSimulation, CountsStepsOfTheOptimizer) {
  const auto seconds = [](const std::vector<std::string>& overrides, uint64_t messages) {
    return NetworkSimulation(keys(overrides))
        .step_seconds(epoch_of(0, 1, 20, 50, messages), {.name = "ideal"}, "a");
  };
  EXPECT_DOUBLE_EQ(seconds({"train.accumulate=3"}, 30), 3 * kCompute);
  EXPECT_DOUBLE_EQ(seconds({"train.accumulate=3"}, 28), 2.8 * kCompute)
      << "one batch is left for the last step";
  EXPECT_DOUBLE_EQ(seconds({"train.accumulate=3"}, 0), 3 * kCompute) << "an older run does not count them";
  EXPECT_DOUBLE_EQ(seconds({"train.accumulate=3"}, 900), 3 * kCompute);
  // Two micro-batches: four stages one after another for the first, and 3 s until the other is through.
  const double two = 4 * 3 + 3;
  const std::vector<std::string> halves = {"train.accumulate=3", "pipeline.micro_batches=2"};
  EXPECT_DOUBLE_EQ(seconds(halves, 60), 3 * two);
  EXPECT_DOUBLE_EQ(seconds(halves, 57), 2.9 * two) << "the last batch is of one micro-batch";
  // Four micro-batches of a full stream take what the busiest stage does, and each is a step.
  EXPECT_DOUBLE_EQ(seconds({"pipeline.schedule=pipedream", "pipeline.micro_batches=4"}, 10), 3);
}

TEST(NetworkSimulation, AddsUpOverEpochs) {
  const NetworkSimulation simulation(
      keys({R"(networks=[{name="a",bandwidth="unlimited"},{name="b",bandwidth="unlimited",compute=2}])"}));
  const auto first = simulation.metrics(epoch_of(0, 1, 20), {});
  const auto second = simulation.metrics(epoch_of(1, 1, 20), first);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(second[1].name, "b");
  EXPECT_DOUBLE_EQ(second[1].step_seconds, kCompute / 2);
  EXPECT_DOUBLE_EQ(first[1].seconds, 10 * kCompute / 2);
  EXPECT_DOUBLE_EQ(second[1].seconds, 20 * kCompute / 2);
}

TEST(NetworkSimulation, RefusesReplicasAndEpochsWithoutStages) {
  EXPECT_THAT(test::message_of<InputError>([] { NetworkSimulation(keys({"pipeline.replicas=2"})); }),
              HasSubstr("pipeline.replicas: expected 1"));
  EXPECT_THAT(test::message_of<InputError>([] {
                time_to_target(run_of({1}, 20, keys({"pipeline.replicas=2"})), {.metric = "loss", .value = 1},
                               slow());
              }),
              testing::StartsWith("run/metrics.jsonl: pipeline.replicas: expected 1"));
  EpochMetrics epoch = epoch_of(3, 1, 20);
  epoch.stages.clear();
  EXPECT_THAT(test::message_of<InputError>(
                  [&] { NetworkSimulation(keys()).step_seconds(epoch, slow(), "a/metrics.jsonl"); }),
              HasSubstr("a/metrics.jsonl: expected \"stages\" with the seconds of each stage in epoch 3"));
}

TEST(NetworkSimulation, RefusesTimesThatNothingTakes) {
  const auto message = [](const EpochMetrics& epoch) {
    return test::message_of<InputError>(
        [&] { NetworkSimulation(keys()).step_seconds(epoch, slow(), "a/metrics.jsonl"); });
  };
  EpochMetrics epoch = epoch_of(0, 1, 20);
  epoch.stages[2].backward = -1;
  EXPECT_EQ(message(epoch),
            "a/metrics.jsonl: backward_seconds of stage: expected from 0 to 1000000000 seconds, found -1");
  epoch.stages[2].backward = 1e300;
  EXPECT_THAT(message(epoch), HasSubstr("a/metrics.jsonl: backward_seconds of stage: expected"));
  epoch = epoch_of(0, 1, 20);
  epoch.boundaries[1].gradients.decode_seconds = -0.5;
  EXPECT_THAT(message(epoch), HasSubstr("a/metrics.jsonl: decode_seconds of layer2: expected"));
  epoch.boundaries[1].gradients.decode_seconds = 1e300;
  EXPECT_THAT(message(epoch), HasSubstr("a/metrics.jsonl: decode_seconds of layer2: expected"));
}

TEST(TimeToTarget, IsThatOfTheFirstEvaluationThatHasIt) {
  const auto run = run_of({2, 1.5, 1.4, 1.6}, 20);
  const auto time = time_to_target(run, {"loss", 1.5}, slow());
  ASSERT_TRUE(time);
  EXPECT_EQ(time->steps, 20U);
  EXPECT_DOUBLE_EQ(time->seconds, 20 * (kCompute + 12));
  EXPECT_DOUBLE_EQ(time->bytes, 20 * 6 * 20e3);
  EXPECT_FALSE(time_to_target(run, {"loss", 1.3}, slow()));
  EXPECT_FALSE(time_to_target(run, {"loss", 1.5, /*off=*/true}, slow()));
  EXPECT_TRUE(time_to_target(run, {"accuracy", 50}, slow()));
  EXPECT_FALSE(time_to_target(run, {"accuracy", 50.1}, slow()));
}

TEST(TimeToTarget, CountsThePartOfAnEpochBeforeAnEvaluationWithinIt) {
  auto run = run_of({2, 1.5}, 20);
  const Score good{.loss = 1, .metrics = {{"accuracy", 60}}};
  run.epochs[1].evaluations = {{14, {.off = good, .on = good}}};
  const auto time = time_to_target(run, {"loss", 1.2}, slow());
  ASSERT_TRUE(time);
  EXPECT_EQ(time->steps, 14U);
  EXPECT_DOUBLE_EQ(time->seconds, 14 * (kCompute + 12));
  EXPECT_DOUBLE_EQ(time->bytes, 14 * 6 * 20e3);
}

TEST(TimeToTarget, EachEpochHasItsOwnBytes) {
  auto run = run_of({2, 1}, 20);
  run.epochs[0] = epoch_of(0, 2, 100);  // a warm-up without compression
  EXPECT_DOUBLE_EQ(time_to_target(run, {"loss", 1}, slow())->seconds,
                   10 * (kCompute + 60) + 10 * (kCompute + 12));
}

TEST(TimeToTarget, ALossThatIsNoNumberIsNoQuality) {
  EXPECT_FALSE(time_to_target(run_of({std::numeric_limits<double>::quiet_NaN()}, 20), {"loss", 100}, slow()));
}

TEST(TimeToTarget, AnAccuracyThatIsNotKnownReachesNoTarget) {
  auto run = run_of({2}, 20);
  run.epochs = {parse_epoch(to_line(epoch_of(0, 2, 20, std::numeric_limits<double>::quiet_NaN())), "line")};
  EXPECT_FALSE(time_to_target(run, {"accuracy", 1}, slow()));
}

TEST(TimeToTarget, NeedsARunFromItsBeginningAndTheMetric) {
  auto run = run_of({2, 1}, 20);
  EXPECT_THAT(
      test::message_of<InputError>([&] {
        time_to_target(run, {"perplexity", 10}, slow());
      }),
      HasSubstr(
          "run/metrics.jsonl: expected scores with the target's metric \"perplexity\", found loss, accuracy"));
  run.epochs.erase(run.epochs.begin());
  EXPECT_THAT(test::message_of<InputError>([&] {
                time_to_target(run, {"loss", 1}, slow());
              }),
              HasSubstr("expected a run from epoch 0 on, found epoch 1"));
}

TEST(Frontier, SortsByTimeWithMeansAndErrorsOverSeeds) {
  const std::vector<TrainedVariant> variants = {
      {"never", {run_of({2}, 20)}},
      {"none", {run_of({2, 1}, 100)}},
      {"small", {run_of({2, 2, 1}, 10), run_of({2, 1}, 10), run_of({2, 2}, 10)}},
  };
  const auto rows = frontier(variants, {"loss", 1}, slow());
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].variant, "small");
  EXPECT_EQ(rows[0].seeds, 3);
  EXPECT_EQ(rows[0].reached, 2);
  EXPECT_TRUE(rows[0].is_compressed);
  const double step = kCompute + 6;
  EXPECT_DOUBLE_EQ(rows[0].steps, 25);
  EXPECT_DOUBLE_EQ(rows[0].seconds, 25 * step);
  // 30 and 20 steps: a deviation of 50^0.5 over the root of 2.
  EXPECT_THAT(rows[0].seconds_error, DoubleNear(5 * step, 1e-9));
  EXPECT_DOUBLE_EQ(rows[0].step_seconds, step);
  EXPECT_EQ(rows[1].variant, "none");
  EXPECT_FALSE(rows[1].is_compressed);
  EXPECT_EQ(rows[2].variant, "never");
  EXPECT_EQ(rows[2].reached, 0);
  EXPECT_EQ(none_of(rows), &rows[1]);
  EXPECT_EQ(none_of(frontier({variants[2]}, {"loss", 1}, slow())), nullptr);
}

TEST(Frontier, RefusesRunsOfDifferentTasks) {
  auto text =
      run_of({1}, 20, keys({"model.kind=gpt2", "data.kind=wikitext2", "model.cuts=[\"h.0\",\"h.1\",\"h.2\"]"}));
  text.origin = "text/metrics.jsonl";
  EXPECT_THAT(test::message_of<InputError>([&] {
                frontier({{"a", {run_of({1}, 20)}}, {"b", {text}}}, {"loss", 1}, slow());
              }),
              HasSubstr("text/metrics.jsonl: expected the task of run/metrics.jsonl, data.kind cifar10"));
}

TEST(QualityTarget, IsAMetricAndANumber) {
  const auto target = parse_quality_target("loss=1.40", "--target");
  EXPECT_EQ(target.metric, "loss");
  EXPECT_DOUBLE_EQ(target.value, 1.4);
  EXPECT_EQ(parse_quality_target("accuracy=55", "--target").metric, "accuracy");
  for (const char* text : {"", "loss", "speed=3", "=1", "loss=", "loss=1x", "loss=nan", "loss=inf"}) {
    EXPECT_THAT(test::message_of<InputError>([&] { parse_quality_target(text, "--target"); }),
                HasSubstr("--target: expected"))
        << text;
  }
}

}  // namespace
}  // namespace strait
