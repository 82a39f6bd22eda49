// What a person meets before and beside training: the start's summary, dry runs, the manual of keys, how much
// is said.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using testing::HasSubstr;
using testing::Not;

class Daily : public test::TinyRuns {
 protected:
  static test::ProcessResult strait(const std::vector<std::string>& words,
                                    const std::vector<std::string>& variables = {}) {
    return test::run_process(STRAIT_PROGRAM, words, variables);
  }
};

TEST_F(Daily, TrainingBeginsWithASummary) {
  const auto run = train("run", {"--set", "train.epochs=1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, testing::StartsWith("run "));
  EXPECT_THAT(run.out, HasSubstr("1 epoch of 8 steps with 20 samples"));
  EXPECT_LT(run.out.find("parameters"), run.out.find("epoch 1/1"));
  EXPECT_THAT(run.out,
              testing::ContainsRegex("\ndone after 1 epoch: test off [0-9.]+%, on [0-9.]+%; the run is in"));
}

TEST_F(Daily, ADryRunSaysTheSameAndTouchesNothing) {
  const auto run = train("run", {"--dry-run"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("3 epochs of 8 steps with 20 samples"));
  EXPECT_THAT(run.out, Not(HasSubstr("epoch 1/3")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  const auto wrong = train("run", {"--dry-run", "--set", "model.cuts=[\"layr1\"]"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"layer1\"?"));
}

TEST_F(Daily, QuietLeavesTheResultAlone) {
  const auto quiet = train("quiet", {"-q", "--set", "train.epochs=1"});
  ASSERT_EQ(quiet.status, 0) << quiet.err;
  EXPECT_EQ(quiet.err, "");
  EXPECT_THAT(quiet.out, testing::MatchesRegex("done after 1 epoch: [^\n]*\n"));
}

TEST_F(Daily, VerboseAddsEveryBoundaryAndStage) {
  const auto run = train("run", {"-v", "--set", "train.epochs=1"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto epoch = test::metrics_of(dir_ / "run").at(0);
  EXPECT_EQ(epoch.at("boundaries").size(), 3U);
  for (const auto& boundary : epoch.at("boundaries")) {
    const std::string bytes = boundary.at("activations").at("wire_bytes").dump();
    EXPECT_THAT(run.out,
                HasSubstr(boundary.at("name").get<std::string>() + " activations: " + bytes + " bytes in "));
  }
  EXPECT_THAT(run.out, HasSubstr("stage layer4.0..head: forward "));
  const auto both = train("other", {"-v", "-q"});
  EXPECT_EQ(both.status, 2);
}

TEST_F(Daily, TheManualIsAConfigurationThatTrains) {
  const auto resolved = strait({"config", config_, "--set", "train.epochs=1"});
  ASSERT_EQ(resolved.status, 0) << resolved.err;
  test::write_file(dir_ / "manual.toml", resolved.out);
  const auto run = strait({"train", dir_ / "manual.toml", "--out", dir_ / "manual"});
  ASSERT_EQ(run.status, 0) << run.err;
  ASSERT_EQ(train("run", {"--set", "train.epochs=1"}).status, 0);
  expect_equal_runs("run", "manual");
  EXPECT_THAT(strait({"config"}).out, HasSubstr("\n# layers = 2 "));
  EXPECT_THAT(strait({"config", "--set", "model.knd=gpt2"}).err, HasSubstr("did you mean \"model.kind\"?"));
}

TEST_F(Daily, ASweepEndsWithTheWayToAReportAndIsQuietWhereAsked) {
  test::write_file(dir_ / "sweep.toml",
                   "base = \"tiny.toml\"\ntrain.epochs = 1\n[[variants]]\nname = \"one\"\n");
  const std::string out = dir_ / "sweep";
  const auto quiet = strait({"sweep", dir_ / "sweep.toml", "--out", out, "-q"});
  ASSERT_EQ(quiet.status, 0) << quiet.err;
  EXPECT_EQ(quiet.err, "");
  EXPECT_THAT(quiet.out, testing::StartsWith("\nrun "));
  EXPECT_THAT(quiet.out, testing::EndsWith(fmt::format("\nFor a page with charts and tables: {} report {}\n",
                                                       STRAIT_PROGRAM, out)));
}

/// What libgomp says of a variable when it is loaded; the program may load it twice.
std::string last_display(const std::string& err, const std::string& variable) {
  const size_t at = err.rfind(variable + " = '");
  if (at == std::string::npos) return "none";
  const size_t begin = err.find('\'', at) + 1;
  return err.substr(begin, err.find('\'', begin) - begin);
}

TEST_F(Daily, WaitingThreadsSleepUnlessTheEnvironmentSaysOtherwise) {
  const auto settings_with = [&](const std::vector<std::string>& variables) {
    std::vector<std::string> all = {"OMP_DISPLAY_ENV=verbose"};
    all.insert(all.end(), variables.begin(), variables.end());
    const std::string display = strait({"--version"}, all).err;
    return last_display(display, "OMP_WAIT_POLICY") + " " + last_display(display, "GOMP_SPINCOUNT");
  };
  EXPECT_EQ(settings_with({}), "PASSIVE 50000");
  EXPECT_THAT(settings_with({"OMP_WAIT_POLICY=active"}), testing::StartsWith("ACTIVE "));
  EXPECT_THAT(settings_with({"GOMP_SPINCOUNT=70000"}), testing::EndsWith(" 70000"));
}

TEST_F(Daily, OmpNumThreadsCountsWhereTheConfigurationLeavesIt) {
  const std::vector<std::string> words = arguments("run", {"--dry-run", "--set", "train.threads=0"});
  EXPECT_THAT(strait(words, {"OMP_NUM_THREADS=3"}).out, HasSubstr("cpu, 3 threads"));
  EXPECT_THAT(strait(arguments("run", {"--dry-run"}), {"OMP_NUM_THREADS=3"}).out, HasSubstr("cpu, 1 thread\n"));
}

}  // namespace
}  // namespace strait
