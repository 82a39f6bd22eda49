#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "strait/base/units.h"
#include "tests/cli/distributed_runs.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Eight steps an epoch, three epochs; lines after 3, 6, ... 24.
class Steps : public test::DistributedRuns {
 protected:
  static constexpr const char* kEvery = "train.log_every=3";

  std::vector<json> lines(const std::string& out) const {
    std::vector<json> all;
    std::istringstream text(test::read_file(dir_ / out / "steps.jsonl"));
    for (std::string line; std::getline(text, line);) all.push_back(json::parse(line));
    return all;
  }

  static std::vector<json> without_times(std::vector<json> lines) {
    for (json& line : lines) {
      for (const char* key : {"seconds", "samples_per_second", "bubble_share"})
        EXPECT_EQ(line.erase(key), 1U) << key;
    }
    return lines;
  }
};

TEST_F(Steps, AddUpToTheEpochs) {
  const auto result = train("run", {"--set", kEvery});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto steps = lines("run");
  ASSERT_EQ(steps.size(), 8U);
  std::map<std::string, double> sums;
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].at("step"), 3 * (i + 1));
    EXPECT_EQ(steps[i].at("steps"), 3);
    EXPECT_EQ(steps[i].at("epoch"), (3 * (i + 1) - 1) / 8);
    for (const char* key : {"raw_bytes", "wire_bytes", "seconds"}) sums[key] += steps[i].at(key).get<double>();
    sums["loss"] += steps[i].at("train_loss").get<double>() * 3 / 24;
    sums["accuracy"] += steps[i].at("train_accuracy").get<double>() * 3 / 24;
  }
  std::map<std::string, double> epochs;
  for (const auto& epoch : test::metrics_of(dir_ / "run")) {
    for (const auto& boundary : epoch.at("boundaries")) {
      for (const char* direction : {"activations", "gradients"}) {
        for (const char* key : {"raw_bytes", "wire_bytes"})
          epochs[key] += boundary.at(direction).at(key).get<double>();
      }
    }
    epochs["seconds"] += epoch.at("seconds").get<double>();
    epochs["loss"] += epoch.at("train_loss").get<double>() / 3;
    epochs["accuracy"] += epoch.at("train_accuracy").get<double>() / 3;
  }
  EXPECT_DOUBLE_EQ(sums["raw_bytes"], epochs["raw_bytes"]);
  EXPECT_DOUBLE_EQ(sums["wire_bytes"], epochs["wire_bytes"]);
  EXPECT_NEAR(sums["loss"], epochs["loss"], 1e-9);
  EXPECT_NEAR(sums["accuracy"], epochs["accuracy"], 1e-9);
  EXPECT_NEAR(sums["seconds"], epochs["seconds"], 1e-9);
  const auto bytes = static_cast<uint64_t>(steps[0].at("wire_bytes").get<double>() / 3);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("step 3  train loss "), HasSubstr("  " + size_text(bytes) + " a step, ratio "),
                    HasSubstr("  bubble ")));
  // It changes nothing that is trained.
  EXPECT_EQ(test::read_file(dir_ / "run/model.safetensors"), test::read_file(whole() + "/model.safetensors"));
}

TEST_F(Steps, AreTheSameOfFourProcesses) {
  for (const std::string schedule : {"1f1b", "pipedream"}) {
    std::vector<std::string> flags = {"--set", kEvery, "--set", "pipeline.schedule=" + schedule};
    if (schedule != "1f1b") flags.insert(flags.end(), {"--set", "compression.activations.feedback=none"});
    ASSERT_EQ(train("one " + schedule, flags).status, 0);
    train_with_ranks("four " + schedule, flags);
    EXPECT_EQ(without_times(lines("one " + schedule)), without_times(lines("four " + schedule)));
    EXPECT_EQ(lines("one " + schedule).size(), schedule == "1f1b" ? 8U : 16U);
    expect_equal_runs("one " + schedule, "four " + schedule);
  }
}

TEST_F(Steps, OfAResumedRunGoOnBehindTheCheckpoint) {
  const std::vector<std::string> flags = {"--set", kEvery, "--set", "checkpoint.every_steps=4"};
  test::Process training(STRAIT_PROGRAM, arguments("cut", flags));
  wait_for_checkpoint("cut", {}, [&] { return training.has_ended(); });
  training.send(SIGKILL);
  training.wait();
  // Lines behind the checkpoint, the last of them torn, are another training's by now.
  test::write_file(dir_ / "cut/steps.jsonl", test::read_file(dir_ / "cut/steps.jsonl") +
                                                 json{{"step", 1000},
                                                      {"epoch", 9},
                                                      {"steps", 3},
                                                      {"train_loss", 1},
                                                      {"lr", 1},
                                                      {"seconds", 1},
                                                      {"raw_bytes", 1},
                                                      {"wire_bytes", 1},
                                                      {"bubble_share", 0}}
                                                     .dump() +
                                                 "\n{\"step\": 10");
  auto rest = flags;
  rest.emplace_back("--resume");
  ASSERT_EQ(train("cut", rest).status, 0);
  std::vector<int> numbers;
  for (const auto& line : lines("cut")) numbers.push_back(line.at("step"));
  EXPECT_THAT(numbers, ElementsAre(3, 6, 9, 12, 15, 18, 21, 24));
}

TEST_F(Steps, OfAnotherRunGoWithIt) {
  ASSERT_EQ(train("run", {"--set", kEvery, "--set", "train.epochs=1"}).status, 0);
  ASSERT_EQ(train("run", {"--overwrite", "--set", "train.epochs=1"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run/steps.jsonl"));
}

}  // namespace
}  // namespace strait
