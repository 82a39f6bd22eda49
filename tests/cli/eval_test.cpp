// `strait eval` with the state of links that a run has left, and without it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

namespace fs = std::filesystem;

class Eval : public test::TinyRuns {
 protected:
  test::ProcessResult eval(const fs::path& weights, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), {"eval", config_, "--weights", weights});
    return test::run_process(STRAIT_PROGRAM, flags);
  }

  json scores(const fs::path& weights, std::vector<std::string> flags = {}) const {
    flags.push_back("--json");
    const auto result = eval(weights, flags);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }

  /// Far from the run that made them.
  fs::path copied(const fs::path& weights) const {
    fs::create_directories(dir_ / "elsewhere");
    fs::copy_file(weights, dir_ / "elsewhere/weights.safetensors", fs::copy_options::overwrite_existing);
    return dir_ / "elsewhere/weights.safetensors";
  }

  const fs::path run_ = whole();
  const fs::path weights_ = run_ / "model.safetensors";
};

std::vector<std::string> evaluation(const std::string& mode) {
  return {"--set", "compression.evaluation=" + mode};
}

TEST_F(Eval, BesideItsCheckpointGivesTheLastEpochsScores) {
  const json last = test::metrics_of(run_).back().at("test");
  for (const char* mode : {"off", "on", "plain", "frozen", "live"}) EXPECT_TRUE(last.contains(mode)) << mode;
  EXPECT_EQ(scores(weights_), last);
  EXPECT_EQ(scores(run_ / "checkpoint/epoch-0003-batch-00000/model.safetensors"), last);
  for (const char* mode : {"plain", "frozen", "live"}) {
    const json named = scores(weights_, evaluation(mode));
    EXPECT_EQ(named.at("evaluation"), mode);
    EXPECT_EQ(named.at("on"), last.at(mode));
    EXPECT_EQ(named.at("frozen"), last.at("frozen"));
  }
  EXPECT_THAT(eval(weights_, evaluation("live")).out, AllOf(HasSubstr("\non (live) "), HasSubstr("\nplain "),
                                                            HasSubstr("\nfrozen "), Not(HasSubstr("\nlive "))));
}

TEST_F(Eval, TheFolderOfARunStandsForItsConfiguration) {
  const auto run = [](const std::vector<std::string>& words) {
    const auto result = test::run_process(STRAIT_PROGRAM, words);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(json::parse(run({"eval", run_, "--weights", run_, "--json"})), scores(weights_));
  EXPECT_EQ(json::parse(run({"eval", run_, "--json"})), scores(weights_));
  const auto without = test::run_process(STRAIT_PROGRAM, {"eval", run_ / "config.toml"});
  EXPECT_EQ(without.status, 2);
  EXPECT_EQ(without.err, "strait: --weights: expected a file, or the folder of a run that has its weights\n");
  EXPECT_EQ(run({"config", run_}), run({"config", run_ / "config.toml"}));
  EXPECT_EQ(run({"train", run_.string() + "/", "--dry-run"}),
            run({"train", run_ / "config.toml", "--dry-run"}));
  const auto trace = (run_ / "config.toml").string();
  const auto refused = test::run_process(STRAIT_PROGRAM, {"train", run_, "--dry-run", "--trace", trace});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "strait: --trace: " + trace + ": expected another file than the one that is read\n");
}

TEST_F(Eval, TheCheckpointMayBeElsewhere) {
  const fs::path weights = copied(weights_);
  const json all = scores(weights_);
  for (const fs::path& place : {run_, run_ / "checkpoint", run_ / "checkpoint/epoch-0003-batch-00000"}) {
    EXPECT_EQ(scores(weights, {"--checkpoint", place}), all) << place;
  }
}

TEST_F(Eval, WithoutLinkStateScoresPlainAndRefusesTheRest) {
  const fs::path weights = copied(weights_);
  const json all = scores(weights_);
  const json plain = scores(weights);
  for (const char* mode : {"off", "on", "plain"}) EXPECT_EQ(plain.at(mode), all.at(mode));
  EXPECT_FALSE(plain.contains("frozen"));
  EXPECT_FALSE(plain.contains("live"));
  EXPECT_THAT(eval(weights).out,
              HasSubstr("frozen and live are not scored, because these weights have no link state"));
  for (const char* mode : {"frozen", "live"}) {
    const auto refused = eval(weights, evaluation(mode));
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.out, "");
    EXPECT_THAT(refused.err,
                MatchesRegex("strait: [^\n]*weights.safetensors: these weights have no link state, which "
                             "compression.evaluation = \"" +
                             std::string(mode) + "\" reads [^\n]*\n"));
  }
}

TEST_F(Eval, StateOfOtherWeightsOrOfNoneIsRefused) {
  ASSERT_EQ(train("other", {"--set", "train.epochs=1", "--set", "seed=8"}).status, 0);
  const auto other = eval(weights_, {"--checkpoint", dir_ / "other"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(
      other.err,
      MatchesRegex("strait: [^\n]*epoch-0001-batch-00000: is of other weights: tensor [^\n]* differs\n"));
  ASSERT_EQ(train("bare", {"--set", "train.epochs=1", "--set", "compression.activations.feedback=none"}).status,
            0);
  const auto bare = eval(dir_ / "bare/model.safetensors", evaluation("live"));
  EXPECT_EQ(bare.status, 2);
  EXPECT_THAT(bare.err, HasSubstr("has no feedback state of activations"));
  EXPECT_EQ(eval(weights_, {"--checkpoint", dir_ / "nothing"}).status, 2);
}

// It is wrong whether the scores need its state or not.
TEST_F(Eval, ACheckpointThatIsNamedMustBeThere) {
  const auto refused =
      eval(weights_, {"--set", "compression.activations.feedback=none", "--checkpoint", dir_ / "nothing"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err, "strait: " + (dir_ / "nothing").string() + ": expected a checkpoint, found none\n");
}

TEST_F(Eval, AqSgdNeedsNoStateForTestSamples) {
  const std::vector<std::string> scheme = {"--set", "compression.activations.feedback=aq-sgd"};
  auto flags = scheme;
  flags.insert(flags.end(), {"--set", "train.epochs=1"});
  ASSERT_EQ(train("aq", flags).status, 0);
  const json all = scores(copied(dir_ / "aq/model.safetensors"), scheme);
  EXPECT_EQ(all, test::metrics_of(dir_ / "aq").back().at("test"));
  EXPECT_EQ(all.at("frozen"), all.at("off"));
}

}  // namespace
}  // namespace strait
