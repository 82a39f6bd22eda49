// Runs of one process over emulated links: their bits, and what their metrics say of the time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/experiment/run.h"
#include "strait/experiment/start_summary.h"
#include "tests/support/equal_runs.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kFourStages = R"(name = "linked"
seed = 3
[model]
width = 4
[data]
kind = "shapes"
train_limit = 80
test_limit = 20
batch_size = 20
[train]
epochs = 1
threads = 1
[compression]
activations = { codec = "quant:4,scope=sample", feedback = "ef21" }
gradients = { codec = "topk:0.2", feedback = "ef" }
)";

class LinkedRuns : public testing::Test {
 protected:
  EpochMetrics run(const std::string& name, const std::vector<std::string>& overrides) {
    TrainObserver silent;
    const Config config = parse_config(kFourStages, "linked.toml", overrides);
    return run_experiment(config, dir_ / name, Start::fresh, silent).epochs.back();
  }

  const test::TempDir dir_;
};

TEST_F(LinkedRuns, HaveTheBitsOfThoseWithout) {
  for (const std::vector<std::string>& schedule : std::vector<std::vector<std::string>>{
           {"pipeline.micro_batches=4"},
           {"pipeline.schedule=interleaved", "pipeline.stages_per_rank=2"},
           {"pipeline.schedule=pipedream", "pipeline.micro_batches=2", "compression.activations.feedback=none",
            "compression.gradients.feedback=none"}}) {
    auto linked = schedule;
    linked.push_back("pipeline.link=50Mbps,1ms");
    const std::string name = std::to_string(schedule.size());
    run(name, schedule);
    run(name + "-linked", linked);
    test::expect_equal_runs(dir_ / name, dir_ / (name + "-linked"));
  }
}

// With one micro-batch all stages wait for each message from when it is sent until it has arrived. The wait
// counts as time of the run and not as time of a stage.
TEST_F(LinkedRuns, WaitForEveryMessageWhileNoStageComputes) {
  const EpochMetrics epoch = run("linked", {"pipeline.link=unlimited,10ms", "pipeline.micro_batches=1"});
  const double waits = static_cast<double>(epoch.steps) * 2 * 3 * 10e-3;
  EXPECT_GE(epoch.seconds, waits);
  ASSERT_EQ(epoch.stages.size(), 4U);
  double busy = 0;
  for (const auto& stage : epoch.stages) {
    EXPECT_GT(stage.forward, 0);
    busy += static_cast<double>(epoch.steps) * (stage.forward + stage.backward);
  }
  EXPECT_LE(busy, epoch.seconds - waits);
  EXPECT_GE(epoch.bubble_share, waits / epoch.seconds);
  EXPECT_LT(epoch.bubble_share, 1);
}

// The bytes are those of the frames, whose rate is that of the link or less.
TEST_F(LinkedRuns, SendNoFasterThanTheLink) {
  const EpochMetrics epoch = run("linked", {"pipeline.link=20Mbps", "pipeline.micro_batches=1"});
  double bytes = 0;
  for (const auto direction : {Direction::activation, Direction::gradient}) {
    bytes += static_cast<double>(epoch.total(direction).wire_bytes);
  }
  EXPECT_GE(epoch.seconds, bytes / 2.5e6);
}

TEST_F(LinkedRuns, NothingCrossesALinkWithinOneProcessOfTheSchedule) {
  const EpochMetrics epoch = run(
      "linked", {"pipeline.link=unlimited,20s", "pipeline.schedule=interleaved", "pipeline.stages_per_rank=4"});
  for (const auto direction : {Direction::activation, Direction::gradient}) {
    EXPECT_EQ(epoch.total(direction).messages, 4U * 3U) << to_string(direction);  // steps, cuts
  }
  EXPECT_LT(epoch.seconds, 20) << "one of them has crossed the link";
}

TEST_F(LinkedRuns, SayInOneLineOverWhatTheySend) {
  const auto lines_of = [&](const std::vector<std::string>& overrides, int processes) {
    const Config config = parse_config(kFourStages, "linked.toml", overrides);
    return describe_experiment(config, dir_ / "none", Start::fresh, {.rank = 0, .ranks = processes}, processes);
  };
  const std::vector<std::string> link = {"pipeline.link=200Mbps,50ms"};
  EXPECT_THAT(lines_of(link, 1), Contains("link         200 Mbps with 50 ms latency, emulated between stages"));
  EXPECT_THAT(lines_of(link, 4),
              Contains("link         200 Mbps with 50 ms latency, emulated between processes"));
  EXPECT_THAT(lines_of({}, 4), Not(Contains(HasSubstr("emulated"))));
}

TEST_F(LinkedRuns, WhatIsNoLinkIsRefusedByItsKey) {
  for (const char* wrong : {"fast", "50ms", "999bps", "1Mbps,2ms,3ms"}) {
    try {
      parse_config(kFourStages, "linked.toml", std::vector{std::string("pipeline.link=") + wrong});
      ADD_FAILURE() << wrong;
    } catch (const InputError& error) {
      EXPECT_EQ(
          std::string(error.what()),
          fmt::format("--set pipeline.link={0}: pipeline.link: expected a rate of at least 1kbps and perhaps a "
                      "latency, such as 200Mbps,50ms, or nothing, found \"{0}\"",
                      wrong));
    }
  }
}

}  // namespace
}  // namespace strait
