// What the writer writes, the reader reads.

#include "strait/run/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/run/metrics_json.h"
#include "strait/run/writer.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using test::message_of;
using testing::HasSubstr;

Score scored(double loss, double accuracy) { return {loss, {{"accuracy", accuracy}}}; }

EpochMetrics epoch(int number, double off, double on) {
  EpochMetrics metrics;
  metrics.epoch = number;
  metrics.steps = 4;
  metrics.train = scored(1.0 / 3, 40);
  metrics.test = {.off = scored(0.5, off), .on = scored(0.25, on), .samples = 10};
  metrics.test->modes[EvaluationMode::plain] = metrics.test->on;
  metrics.seconds = 2;
  metrics.evaluation_seconds = 1;
  metrics.boundaries = {{"layer1",
                         {.messages = 4, .raw_bytes = 800, .wire_bytes = 100},
                         {.messages = 4, .raw_bytes = 800, .wire_bytes = 300}}};
  return metrics;
}

class RunFiles : public testing::Test {
 protected:
  RunWriter writer(const std::vector<std::string>& lines = {}, uint64_t step = 0) {
    return {dir_.path(),
            {.name = "n",
             .config = "name = \"n\"\n",
             .seed = 7,
             .config_hash = "hash",
             .epochs = 3,
             .machine = "M"},
            lines,
            step};
  }
  nlohmann::json status() { return nlohmann::json::parse(test::read_file(dir_ / "status.json")); }

  test::TempDir dir_;
};

TEST(Networks, AreReadAsTheyAreWrittenAndAsTheyWere) {
  EpochMetrics written = epoch(0, 30, 20);
  written.networks = {{.name = "home", .step_seconds = 2, .seconds = 8},
                      {.name = "far", .step_seconds = 5, .seconds = 20}};
  nlohmann::json line = to_json(written);
  const nlohmann::json home = {{"step_seconds", 2}, {"seconds", 8}};
  const nlohmann::json far = {{"step_seconds", 5}, {"seconds", 20}};
  const nlohmann::json networks = {{"home", home}, {"far", far}};
  EXPECT_EQ(line.at("networks"), networks);
  EXPECT_EQ(to_json(parse_epoch(line.dump(), "line")), line);

  nlohmann::json list = {home, far};
  list[0]["name"] = "home";
  list[1]["name"] = "far";
  nlohmann::json earlier = line;
  earlier["networks"] = list;
  EXPECT_EQ(to_json(parse_epoch(earlier.dump(), "line")), line);
}

TEST_F(RunFiles, AreReadAsTheyWereWritten) {
  RunWriter run = writer();
  EXPECT_EQ(status_of(dir_.path()), RunStatus::running);
  run.add_epoch(epoch(0, 30, 20));
  run.add_epoch(epoch(1, 25, 21));
  run.set_status(RunStatus::done);
  const StatusRecord record = parse_status(test::read_file(dir_ / "status.json"), "status.json");
  EXPECT_EQ(record.status, RunStatus::done);
  EXPECT_EQ(record.seed, 7U);
  EXPECT_EQ(record.epochs, 3U);
  EXPECT_EQ(record.machine, "M");
  EXPECT_EQ(status()["best"]["off"]["epoch"], 0);
  EXPECT_EQ(status()["best"]["on"]["epoch"], 1);
  EXPECT_EQ(status()["epochs_done"], 2);

  const EpochMetrics last = read_last_epoch(dir_.path());
  EXPECT_EQ(to_json(last), to_json(epoch(1, 25, 21)));
  const RunSummary summary = summarise(dir_.path());
  EXPECT_EQ(summary.test.on.at(kAccuracy), 21);
  EXPECT_EQ(summary.seconds, 6);
  EXPECT_EQ(summary.wire_bytes_per_step, 100);
  EXPECT_EQ(summary.ratio, 4);
}

TEST_F(RunFiles, BeginWithTheLinesOfAResumedRun) {
  const std::vector<std::string> lines = {to_line(epoch(0, 30, 20))};
  writer().add_epoch(epoch(0, 99, 99));
  EXPECT_FALSE(has_metrics(dir_.path(), lines));
  RunWriter run = writer(lines);
  EXPECT_TRUE(has_metrics(dir_.path(), lines));
  ASSERT_EQ(run.epochs().size(), 1U);
  run.add_epoch(epoch(1, 20, 20));
  EXPECT_EQ(status()["best"]["off"]["accuracy"], 30);
  const std::string text = test::read_file(dir_ / "metrics.jsonl");
  EXPECT_EQ(parse_epochs(text, "m", true).size(), 2U);
  EXPECT_EQ(parse_epochs(text + "{\"epo", "m", false).size(), 2U) << "a line that is being written";
  EXPECT_EQ(message_of<InputError>([&] { parse_epochs(text + "{\"epo", "m", true); }),
            "m:3: ends inside a line");
  EXPECT_EQ(message_of<InputError>([&] { parse_epochs(text + "{}\n", "m", true); }),
            "m:3: train_loss: missing");
  EXPECT_EQ(message_of<InputError>([&] { parse_epochs(text + lines[0] + "\n", "m", true); }),
            "m:3: epoch: expected one after 1, found 0");
  EXPECT_EQ(message_of<InputError>([&] { parse_epochs(text + to_line(epoch(1, 20, 20)) + "\n", "m", true); }),
            "m:3: epoch: expected one after 1, found 1");
}

// A checkpoint holds what is trained. The log of steps is not worth the run that a crash has left it to.
TEST_F(RunFiles, KeepTheStepsThatCanBeReadUpToACheckpoint) {
  const auto line = [](uint64_t step) {
    StepMetrics metrics;
    metrics.step = step;
    metrics.steps = 2;
    metrics.train = scored(2.5, 40);
    return to_line(metrics) + "\n";
  };
  const std::string before = line(2) + line(4);
  const std::string zeros(40, '\0');  // what a file system may leave where the power went
  for (const std::string& behind :
       {line(6), zeros, zeros + "\n" + line(4), line(4).substr(0, 9), std::string()}) {
    test::write_file(dir_ / "steps.jsonl", before + behind);
    writer({}, 4);
    EXPECT_EQ(test::read_file(dir_ / "steps.jsonl"), before) << behind;
  }
  writer({}, 3);
  EXPECT_EQ(test::read_file(dir_ / "steps.jsonl"), line(2));
  test::write_file(dir_ / "steps.jsonl", zeros + "\n" + before);
  writer({}, 4);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "steps.jsonl"));
}

TEST_F(RunFiles, SayWhetherTheRunIsOfAConfiguration) {
  EXPECT_EQ(recorded_status("hash", dir_.path()), std::nullopt);
  RunWriter run = writer();
  EXPECT_EQ(recorded_status("hash", dir_.path()), RunStatus::running);
  EXPECT_EQ(recorded_status("other", dir_.path()), std::nullopt);
  record_failure(dir_.path(), "killed");
  EXPECT_EQ(recorded_status("hash", dir_.path()), RunStatus::failed);
  EXPECT_EQ(status()["error"], "killed");
  run.set_status(RunStatus::failed, "a path such as caf\xe9");
  EXPECT_EQ(status()["error"], "a path such as caf\xef\xbf\xbd");
  run.set_status(RunStatus::diverged, "no number");
  record_failure(dir_.path(), "killed");
  EXPECT_EQ(status()["error"], "no number") << "the run had said so itself";
}

TEST_F(RunFiles, ThatCannotBeReachedAreNamed) {
  for (const std::string name : {"status.json", "metrics.jsonl", "steps.jsonl"}) {
    std::filesystem::create_symlink(name, dir_ / name);  // to itself
  }
  const auto complaint = [&](const std::string& name) {
    return (dir_ / name).string() + ": cannot be read: Too many levels of symbolic links";
  };
  EXPECT_EQ(message_of<InputError>([&] { status_of(dir_.path()); }), complaint("status.json"));
  EXPECT_EQ(message_of<InputError>([&] { recorded_status("hash", dir_.path()); }), complaint("status.json"));
  EXPECT_EQ(message_of<InputError>([&] { has_metrics(dir_.path(), {"line"}); }), complaint("metrics.jsonl"));
  EXPECT_EQ(message_of<InputError>([&] { read_steps(dir_.path()); }), complaint("steps.jsonl"));
  EXPECT_EQ(message_of<InputError>([&] { writer(); }), complaint("steps.jsonl"));
}

TEST_F(RunFiles, ThatCannotBeAddedToAreNamedWithTheReason) {
  RunWriter run = writer();
  for (const std::string name : {"steps.jsonl", "metrics.jsonl"}) {
    std::filesystem::remove(dir_ / name);
    std::filesystem::create_symlink("/dev/full", dir_ / name);
    EXPECT_EQ(
        message_of<Error>([&] { name == "steps.jsonl" ? run.add_steps({}) : run.add_epoch(epoch(0, 30, 20)); }),
        (dir_ / name).string() + ": cannot be written: No space left on device");
  }
}

TEST_F(RunFiles, AnEpochWithoutScoresLeavesTheBest) {
  EpochMetrics unscored = epoch(1, 0, 0);
  unscored.test.reset();
  RunWriter run = writer();
  run.add_epoch(epoch(0, 30, 20));
  run.add_epoch(unscored);
  EXPECT_EQ(status()["best"]["on"]["epoch"], 0);
  EXPECT_EQ(status()["last"]["epoch"], 1);
  EXPECT_FALSE(status()["last"].contains("test"));
  EXPECT_EQ(to_json(read_last_epoch(dir_.path())), to_json(unscored));
  EXPECT_THAT(message_of<InputError>([&] { summarise(dir_.path()); }),
              HasSubstr("metrics.jsonl:2: expected the test set's scores in the last epoch"));
  run.add_epoch(epoch(2, 25, 21));
  EXPECT_EQ(summarise(dir_.path()).test.on.at(kAccuracy), 21);
}

TEST_F(RunFiles, HoldWhatJsonHasNot) {
  EpochMetrics metrics = epoch(0, 30, 20);
  metrics.train.loss = std::nan("");
  metrics.links = {{.rank = 3, .peer = 2, .relayed = true, .outages = 2, .seconds = 4.5}};
  metrics.test->on = {1000, {{"accuracy", 1}, {"perplexity", std::exp(1000.0)}}};
  const EpochMetrics read = parse_epoch(to_line(metrics), "line");
  EXPECT_TRUE(std::isnan(read.train.loss));
  EXPECT_TRUE(std::isinf(read.test->on.at(kPerplexity)));
  EXPECT_TRUE(read.links.at(0).relayed);
  EXPECT_EQ(read.links.at(0).outages, 2);
  EXPECT_EQ(to_line(read), to_line(metrics));
  metrics.test->on.metrics["accuracy"] = std::nan("");
  EXPECT_TRUE(std::isnan(parse_epoch(to_line(metrics), "line").test->on.at(kAccuracy)));
}

}  // namespace
}  // namespace strait
