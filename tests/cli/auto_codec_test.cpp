#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/cli/distributed_runs.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The tiny network with codec "auto": eight steps an epoch, three epochs.
class AutoCodec : public test::DistributedRuns {
 protected:
  AutoCodec() {
    std::string text = kConfig;
    text.erase(text.find("[compression]"));
    test::write_file(config_, text + R"([compression]
activations = { codec = "auto" }
gradients = { codec = "auto" }
auto = { ladder = ["none", "quant:8,scope=sample", "quant:4,scope=sample", "topk:0.1"], budget = 0.1 }
)");
  }

  static std::string codecs_of(const json& choice) {
    std::string text;
    for (const auto& boundary : choice.at("boundaries")) {
      text += " " + boundary.at("activations").at("codec").get<std::string>() + "/" +
              boundary.at("gradients").at("codec").get<std::string>();
    }
    return text;
  }

  /// Of each epoch, for each of its choices the codecs of its boundaries.
  std::vector<std::vector<std::string>> choices(const std::string& out) const {
    std::vector<std::vector<std::string>> all;
    for (const auto& epoch : test::metrics_of(dir_ / out)) {
      auto& of_epoch = all.emplace_back();
      for (const auto& choice : epoch.at("choices"))
        of_epoch.push_back(choice.at("step").dump() + codecs_of(choice));
    }
    return all;
  }

  /// Leaves of a finished run what it had after so many steps.
  void cut(const std::string& out, int step) const {
    std::vector<std::filesystem::path> later;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_ / out / "checkpoint")) {
      if (entry.path().filename() != "position.json") continue;
      const auto position = json::parse(test::read_file(entry.path()));
      if (position.at("position").at("step") > step) later.push_back(entry.path().parent_path());
    }
    for (const auto& folder : later) std::filesystem::remove_all(folder);
    std::filesystem::remove(dir_ / out / "model.safetensors");
    std::filesystem::remove(dir_ / out / "status.json");
  }

  /// The one that was made after so many steps.
  json choice_after(const std::string& out, int step) const {
    for (const auto& epoch : test::metrics_of(dir_ / out)) {
      for (const auto& choice : epoch.at("choices")) {
        if (choice.at("step") == step) return choice;
      }
    }
    ADD_FAILURE() << out << " has no choice after " << step << " steps";
    return {};
  }
};

TEST_F(AutoCodec, StaysWithinItsBudgetFromTheBeginning) {
  const auto result = train("run");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("codecs: layer1 "));
  const auto epochs = test::metrics_of(dir_ / "run");
  ASSERT_EQ(epochs.size(), 3U);
  ASSERT_EQ(epochs[0].at("choices").size(), 2U);
  EXPECT_EQ(epochs[0].at("choices")[0].at("step"), 0);
  EXPECT_THAT(choices("run")[0][0], AllOf(HasSubstr("quant:"), Not(HasSubstr("topk")), Not(HasSubstr("none"))));
  for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    const auto& choice = epochs[epoch].at("choices").back();
    EXPECT_EQ(choice.at("step"), epoch == 0 ? 4 : 8 * epoch);
    for (const auto& boundary : choice.at("boundaries")) {
      for (const char* direction : {"activations", "gradients"}) {
        EXPECT_LE(boundary.at(direction).at("relative_error"), 0.1);
        EXPECT_NE(boundary.at(direction).at("codec"), "none") << "8 bits are within the budget";
        EXPECT_NE(boundary.at(direction).at("codec"), "topk:0.1");
      }
    }
  }
}

// Bytes of an epoch in which one choice held are those of the same codecs by hand, and so is what is trained.
TEST_F(AutoCodec, TrainsAsTheSameCodecsByHandDo) {
  const std::string one = R"(compression.auto.ladder=["quant:4,scope=sample"])";
  ASSERT_EQ(train("auto", {"--set", one}).status, 0);
  ASSERT_EQ(train("by hand", {"--set", "compression.activations.codec=quant:4,scope=sample", "--set",
                              "compression.gradients.codec=quant:4,scope=sample"})
                .status,
            0);
  EXPECT_EQ(test::read_file(dir_ / "auto/model.safetensors"),
            test::read_file(dir_ / "by hand/model.safetensors"));
  EXPECT_EQ(test::metrics_of(dir_ / "auto").back().at("boundaries")[0].at("gradients").at("wire_bytes"),
            test::metrics_of(dir_ / "by hand").back().at("boundaries")[0].at("gradients").at("wire_bytes"));
}

TEST_F(AutoCodec, FourProcessesChooseAndTrainAsOneDoes) {
  for (const std::string schedule : {"1f1b", "pipedream"}) {
    const std::vector<std::string> flags = {"--set", "pipeline.schedule=" + schedule};
    ASSERT_EQ(train("one " + schedule, flags).status, 0);
    train_with_ranks("four " + schedule, flags);
    expect_equal_runs("one " + schedule, "four " + schedule);
    EXPECT_EQ(choices("one " + schedule), choices("four " + schedule));
  }
}

TEST_F(AutoCodec, AResumedRunChoosesAsAnUndisturbedOneDoes) {
  ASSERT_EQ(train("whole").status, 0);
  // Stopped before the first choice, right behind it, within an epoch and at its end.
  for (const int step : {2, 4, 13, 16}) {
    const std::string out = "cut " + std::to_string(step);
    ASSERT_EQ(train(out, {"--set", "checkpoint.every_steps=1", "--set", "checkpoint.keep=100"}).status, 0);
    cut(out, step);
    const auto result = train(out, {"--resume"});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_equal_runs("whole", out);
    EXPECT_EQ(choices("whole"), choices(out));
  }
}

TEST_F(AutoCodec, ChoosesAfterStepsToo) {
  const std::vector<std::string> flags = {"--set", "compression.auto.every_steps=3", "--set", "train.epochs=2"};
  ASSERT_EQ(train("run", flags).status, 0);
  std::vector<std::vector<int>> steps;
  for (const auto& epoch : test::metrics_of(dir_ / "run")) {
    auto& of_epoch = steps.emplace_back();
    for (const auto& choice : epoch.at("choices")) of_epoch.push_back(choice.at("step"));
  }
  EXPECT_EQ(steps, (std::vector<std::vector<int>>{{0, 3, 6}, {8, 9, 12, 15}})) << "none behind the last step";
  train_with_ranks("four", flags);
  expect_equal_runs("run", "four");
}

TEST_F(AutoCodec, ChoosesAgainWheneverItHasTrainedTwiceAsLong) {
  ASSERT_EQ(train("run", {"--set", "data.batch_size=4", "--set", "train.epochs=1"}).status, 0);
  const json epoch = test::metrics_of(dir_ / "run").at(0);
  std::vector<int> steps;
  for (const auto& choice : epoch.at("choices")) steps.push_back(choice.at("step"));
  EXPECT_EQ(steps, (std::vector<int>{0, 4, 8, 16, 32})) << "of 40 steps";
}

/// By time. Times differ from run to run, but of this ladder only the first codec can be taken before anything
/// is known of the second, whose errors are great.
class CosinesOfAutoCodec : public AutoCodec {
 protected:
  static std::vector<std::string> flags(const std::vector<std::string>& keys) {
    std::vector<std::string> all = {"--link", "2Mbps"};
    const auto set = [&](const std::string& key) { all.insert(all.end(), {"--set", key}); };
    for (const char* key :
         {"compression.auto.budget=0", R"(compression.auto.ladder=["quant:8,scope=sample", "topk:0.1"])",
          "train.epochs=1", "train.evaluate_every=0", "data.train_limit=80", "data.test_limit=4",
          "data.batch_size=4"})
      set(key);
    std::ranges::for_each(keys, set);
    return all;
  }

  /// By boundary, after so many steps.
  std::vector<json> cosines(const std::string& out, int step) const {
    std::vector<json> all;
    const json choice = choice_after(out, step);
    for (const auto& boundary : choice.at("boundaries")) all.push_back(boundary.at("gradients").at("cosines"));
    return all;
  }
};

TEST_F(CosinesOfAutoCodec, FourProcessesAndResumedOnesSeeThoseOfOne) {
  auto own = flags({"checkpoint.every_steps=1", "checkpoint.keep=100"});
  ASSERT_EQ(train("one", own).status, 0);
  train_with_ranks("four", own);
  const auto whole = cosines("one", 16);
  double least = 1;
  for (const json& boundary : whole) {
    EXPECT_EQ(boundary.size(), 2U);
    EXPECT_GT(boundary.at("topk:0.1"), 0);
    least = std::min(least, boundary.at("topk:0.1").get<double>());
  }
  EXPECT_LT(least, 0.99) << "what small errors are taken for; a boundary may reach it by chance";
  for (const json& boundary : cosines("one", 8)) EXPECT_EQ(boundary.at("topk:0.1"), 0);
  EXPECT_EQ(whole, cosines("four", 16));
  own.emplace_back("--resume");  // between the batches that say so
  cut("one", 12);
  train_with_ranks("one", own);
  EXPECT_EQ(whole, cosines("one", 16)) << "of one process's checkpoint";
  cut("four", 13);
  ASSERT_EQ(train("four", own).status, 0);
  EXPECT_EQ(whole, cosines("four", 16)) << "of four processes' checkpoint";
}

// Where batches overlap, gradients belong to the activations of their own batch. Weights that stay as they are
// have the same gradients wherever the pipeline is drained.
TEST_F(CosinesOfAutoCodec, AreOfTheSameBatches) {
  const std::vector<std::string> keys = {"pipeline.schedule=pipedream", "train.optimizer.lr=1e-30"};
  ASSERT_EQ(train("streamed", flags(keys)).status, 0);
  ASSERT_EQ(train("drained", flags({keys[0], keys[1], "checkpoint.every_steps=2"})).status, 0);
  const auto streamed = cosines("streamed", 16);
  EXPECT_EQ(streamed.size(), 3U);
  EXPECT_EQ(streamed, cosines("drained", 16));
}

// Over its own links, which are measured: nothing is known of what is chosen, but it is one thing everywhere.
TEST_F(AutoCodec, MeasuresTheLinksOfItsProcesses) {
  train_with_ranks("run", {"--set", "compression.auto.budget=0", "--set", "train.epochs=1"});
  const auto epoch = test::metrics_of(dir_ / "run").at(0);
  const auto& choice = epoch.at("choices").back();
  EXPECT_GT(choice.at("step_seconds"), 0);
  EXPECT_GE(choice.at("step_factor"), 1);
  for (const auto& boundary : choice.at("boundaries")) {
    for (const char* direction : {"activations", "gradients"}) {
      EXPECT_GT(boundary.at(direction).at("bytes_per_second"), 1e6);
      EXPECT_GT(boundary.at(direction).at("latency_seconds"), 0);
    }
  }
}

// Each process's own keys say what it pretends its link to be, and the first one decides what is chosen for.
TEST_F(AutoCodec, OneProcessAloneMayPretendALink) {
  test::RankProcesses all = ranks();
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::string> flags = {"--set", "compression.auto.budget=0", "--set", "train.epochs=1"};
    if (rank == 0) flags.insert(flags.end(), {"--link", "50Mbps"});
    all.start(rank, arguments("run", flags));
  }
  expect_all(all, 0);
  const json choice = choice_after("run", 4);
  for (const auto& boundary : choice.at("boundaries"))
    EXPECT_EQ(boundary.at("gradients").at("bytes_per_second"), 50e6 / 8);
}

TEST_F(AutoCodec, WeightsAreScoredWithTheCodecsThatTheirTrainingEndedWith) {
  ASSERT_EQ(train("run", {"--set", "checkpoint.keep=3"}).status, 0);
  const auto expect_score = [&](const std::filesystem::path& weights, const json& epoch) {
    const auto scored =
        test::run_process(STRAIT_PROGRAM, {"eval", config_, "--weights", dir_ / weights, "--json"});
    ASSERT_EQ(scored.status, 0) << scored.err;
    EXPECT_EQ(json::parse(scored.out).at("on"), epoch.at("test").at("on"));
  };
  const auto epochs = test::metrics_of(dir_ / "run");
  expect_score("run/model.safetensors", epochs.back());
  // A checkpoint at the end of an epoch has the choice for the next step, too.
  for (size_t epoch = 0; epoch + 1 < epochs.size(); ++epoch) {
    const auto folder = fmt::format("run/checkpoint/epoch-{:04}-batch-00000", epoch + 1);
    expect_score(folder + "/model.safetensors", epochs[epoch]);
    const auto known =
        json::parse(test::read_file(dir_ / folder / "position.json")).at("position").at("choices");
    ASSERT_GE(known.size(), 2U);
    EXPECT_EQ(known[known.size() - 2], epochs[epoch].at("choices").back());
    EXPECT_EQ(known.back(), epochs[epoch + 1].at("choices").front());
  }
  std::filesystem::rename(dir_ / "run/model.safetensors", dir_ / "alone.safetensors");
  const auto alone =
      test::run_process(STRAIT_PROGRAM, {"eval", config_, "--weights", dir_ / "alone.safetensors"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err,
              AllOf(HasSubstr("alone.safetensors: codec \"auto\" was chosen in training"), HasSubstr("--set")));
  EXPECT_EQ(std::ranges::count(alone.err, '\n'), 1);
}

TEST_F(AutoCodec, PlansAndSummariesKnowIt) {
  const auto plan = test::run_process(STRAIT_PROGRAM, {"plan", config_});
  EXPECT_THAT(plan.out, AllOf(testing::ContainsRegex("topk:0.1 .*  <- the strongest that auto may choose\n"),
                              Not(HasSubstr("<- the configuration"))));
  EXPECT_EQ(plan.status, 0) << plan.err;
  const auto dry = train("dry", {"--dry-run"});
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_THAT(dry.out, AllOf(HasSubstr("activations auto, gradients auto; auto of none, "),
                             HasSubstr("with the strongest codec of auto")));
}

TEST_F(AutoCodec, ResumesOnlyWithItsOwnCuts) {
  const auto resumed_with = [&](const std::string& cuts) {
    return train("run", {"--resume", "--set", "train.epochs=2", "--set", "model.cuts=" + cuts});
  };
  const std::string own = R"(["layer1", "layer2"])";
  ASSERT_EQ(train("run", {"--set", "train.epochs=1", "--set", "model.cuts=" + own}).status, 0);
  const auto before = test::read_file(dir_ / "run/config.toml");
  for (const auto& [cuts, names] : {std::pair(R"(["layer1"])", "layer1"),
                                    {R"(["layer1", "layer2", "layer3"])", "layer1, layer2, layer3"},
                                    {"[]", "none"}}) {
    const auto refused = resumed_with(cuts);
    EXPECT_EQ(refused.status, 2) << cuts;
    EXPECT_EQ(
        refused.err,
        fmt::format("strait: {}: has codecs that were chosen for the boundaries layer1, layer2, which is "
                    "not what model.cuts has now ({}); a run with codec \"auto\" resumes only with its own "
                    "cuts\n",
                    (dir_ / "run/checkpoint/epoch-0001-batch-00000").string(), names));
  }
  EXPECT_EQ(test::read_file(dir_ / "run/config.toml"), before);
  EXPECT_EQ(resumed_with(own).status, 0);
}

}  // namespace
}  // namespace strait
