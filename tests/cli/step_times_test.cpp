#include "cli/step_times.h"

#include <gmock/gmock.h>

#include "strait/planning/network_simulation.h"
#include "strait/report/networks.h"
#include "strait/run/reader.h"
#include "tests/cli/tiny_runs.h"
#include "tests/report/network_index.h"

namespace strait::cli {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class StepTimesOfRuns : public test::TinyRuns {
 protected:
  StepTimesOfRuns() {
    std::filesystem::create_directory(folder_);
    for (const char* name : {"status.json", "config.toml", "metrics.jsonl"})
      test::write_file(folder_ / name, test::read_file(whole() + "/" + name));
  }

  std::vector<report::Table> tables() const { return {{"t", "t", {{"v", {}, {report::read_run(folder_)}}}}}; }

  void replace(const char* file, const std::string& text, const std::string& by) const {
    std::string content = test::read_file(folder_ / file);
    const size_t at = content.find(text);
    ASSERT_NE(at, std::string::npos) << text;
    test::write_file(folder_ / file, content.replace(at, text.size(), by));
  }

  static const std::vector<report::Epoch>& epochs_of(const std::vector<report::Table>& tables) {
    return tables[0].variants[0].runs[0].epochs;
  }

  /// The times of the run as it is.
  std::vector<report::Epoch> timed(StepTimes& times) const {
    auto all = tables();
    times.add_to(all);
    return epochs_of(all);
  }

  std::filesystem::path folder_ = dir_ / "run";
};

TEST_F(StepTimesOfRuns, AreThoseOfTheSimulation) {
  StepTimes times;
  const auto epochs = timed(times);
  ASSERT_THAT(epochs, SizeIs(3));
  const NetworkSimulation simulation(load_config(folder_ / "config.toml"));
  const auto metrics = read_epochs(folder_, true);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    ASSERT_THAT(epochs[epoch].step_seconds, SizeIs(report::kNetworks));
    for (const auto& [rate, latency] : {std::pair<size_t, size_t>(0, 3), {3, 1}, {10, 0}}) {
      const NetworkOptions network{.name = "n",
                                   .bandwidth = std::string(report::kNetworkRates[rate]),
                                   .latency = std::string(report::kNetworkLatencies[latency])};
      EXPECT_EQ(epochs[epoch].step_seconds[report::network_index(rate, latency)],
                simulation.step_seconds(metrics[epoch], network, "n"));
    }
  }
}

TEST_F(StepTimesOfRuns, AreRememberedUntilTheRunIsMadeAnew) {
  StepTimes times;
  const auto first = timed(times);
  auto again = tables();
  std::filesystem::remove_all(folder_);
  times.add_to(again);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(first[epoch].step_seconds, SizeIs(report::kNetworks));
    EXPECT_EQ(epochs_of(again)[epoch].step_seconds, first[epoch].step_seconds);
  }
  again[0].variants[0].runs[0].epochs[1].seconds += 1;
  times.add_to(again);
  EXPECT_THAT(epochs_of(again)[1].step_seconds, IsEmpty()) << "another epoch, whose files are gone";
  EXPECT_THAT(epochs_of(again)[2].step_seconds, SizeIs(report::kNetworks));
}

TEST_F(StepTimesOfRuns, WhatCouldNotBeReadIsReadAgain) {
  const std::string lines = test::read_file(folder_ / "metrics.jsonl");
  StepTimes times;
  auto all = tables();
  std::filesystem::remove(folder_ / "metrics.jsonl");
  times.add_to(all);
  for (const auto& epoch : epochs_of(all)) EXPECT_THAT(epoch.step_seconds, IsEmpty());
  test::write_file(folder_ / "metrics.jsonl", lines);
  times.add_to(all);
  for (const auto& epoch : epochs_of(all)) EXPECT_THAT(epoch.step_seconds, SizeIs(report::kNetworks));
}

TEST_F(StepTimesOfRuns, ANewEpochIsAddedToThoseThatAreKnown) {
  const std::string lines = test::read_file(folder_ / "metrics.jsonl");
  replace("status.json", "\"done\"", "\"running\"");
  test::write_file(folder_ / "metrics.jsonl", lines.substr(0, lines.find('\n') + 1));
  StepTimes times;
  ASSERT_THAT(timed(times), SizeIs(1));
  test::write_file(folder_ / "metrics.jsonl", lines);
  const auto epochs = timed(times);
  ASSERT_THAT(epochs, SizeIs(3));
  for (const auto& epoch : epochs) EXPECT_THAT(epoch.step_seconds, SizeIs(report::kNetworks));
}

TEST_F(StepTimesOfRuns, AreMissingWhereNoStepCanBeSimulated) {
  const std::string config = test::read_file(folder_ / "config.toml");
  for (const auto& [text, by] : {std::pair("replicas = 1", "replicas = 2"), {"[model]", "[modell]"}}) {
    replace("config.toml", text, by);
    StepTimes times;
    for (const auto& epoch : timed(times)) EXPECT_THAT(epoch.step_seconds, IsEmpty()) << by;
    test::write_file(folder_ / "config.toml", config);
  }
  replace("metrics.jsonl", "\"stages\"", "\"others\"");
  StepTimes times;
  for (const auto& epoch : timed(times)) EXPECT_THAT(epoch.step_seconds, IsEmpty());
}

}  // namespace
}  // namespace strait::cli
