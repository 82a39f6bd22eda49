#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/cli/page_data.h"
#include "tests/cli/tiny_runs.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSweep = R"(base = "tiny.toml"
name = "two"
seeds = [7, 8]
networks = [{ name = "home", bandwidth = "1Mbps", latency = "20ms" }, { name = "near", bandwidth = "unlimited" },
            { name = "known", bandwidth = "unlimited", stage_seconds = [1, 1, 1, 1] }]
variants = [
  { name = "none", compression.activations = { codec = "none", feedback = "none" }, compression.gradients = { codec = "none", feedback = "none" } },
  { name = "small" },
]
)";

class Frontier : public test::TinyRuns {
 protected:
  /// A sweep of two variants, made once for all tests.
  static std::string sweep() {
    static const test::TempDir dir;
    static const bool made = [] {
      test::write_file(dir / "tiny.toml", kConfig);
      test::write_file(dir / "two.toml", kSweep);
      return test::run_process(STRAIT_PROGRAM, {"sweep", dir / "two.toml", "--out", dir / "two"}).status == 0;
    }();
    EXPECT_TRUE(made);
    return dir / "two";
  }

  static test::ProcessResult frontier(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "frontier");
    return test::run_process(STRAIT_PROGRAM, arguments);
  }

  static json frontier_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto result = frontier(std::move(arguments));
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out);
  }

  static void expect_refused(const std::vector<std::string>& arguments, const std::string& words) {
    const auto result = frontier(arguments);
    EXPECT_EQ(result.status, 2) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(testing::StartsWith("strait: "), HasSubstr(words)));
  }
};

TEST_F(Frontier, AddsUpWhatTheRunsSayOfTheirNetworks) {
  const json found = frontier_json({sweep(), "--network", "home", "--target", "loss=100"});
  EXPECT_EQ(found.at("network").at("bandwidth_bits_per_second"), 1e6);
  EXPECT_EQ(found.at("network").at("latency_seconds"), 0.02);
  EXPECT_EQ(found.at("target"), json({{"loss", 100}}));
  ASSERT_EQ(found.at("rows").size(), 2U);
  for (const auto& row : found.at("rows")) {
    // The first evaluation, after three steps of the first epoch, is good enough.
    EXPECT_EQ(row.at("steps"), 3);
    EXPECT_EQ(row.at("reached"), 2);
    double seconds = 0;
    for (const char* seed : {"7", "8"}) {
      const auto epoch =
          test::metrics_of(sweep() + "/" + row.at("variant").get<std::string>() + "-seed" + seed).at(0);
      seconds += epoch.at("networks").at("home").at("step_seconds").get<double>() * 3 / 2;
    }
    EXPECT_NEAR(row.at("seconds"), seconds, 1e-9);
  }
  EXPECT_EQ(found.at("rows").at(0).at("variant"), "small");
  EXPECT_EQ(found.at("rows").at(1).at("over_none"), 1);
  EXPECT_LT(found.at("rows").at(0).at("over_none"), 1);
}

TEST_F(Frontier, TheWholeRunsTimeIsThatOfItsMetrics) {
  const auto epochs = test::metrics_of(sweep() + "/small-seed7");
  EXPECT_EQ(epochs.size(), 3U);
  double seconds = 0;
  for (const auto& epoch : epochs) {
    const json& home = epoch.at("networks").at("home");
    seconds += home.at("step_seconds").get<double>() * epoch.at("steps").get<double>();
    EXPECT_NEAR(home.at("seconds"), seconds, 1e-9);
    EXPECT_LT(epoch.at("networks").at("near").at("step_seconds"), home.at("step_seconds"));
  }
}

TEST_F(Frontier, AResumedRunsTimeCountsFromItsBeginning) {
  const std::vector<std::string> home = {"--set", R"(networks=[{name="home",bandwidth="1Mbps"}])"};
  auto first = home;
  first.insert(first.end(), {"--set", "checkpoint.every_steps=4"});
  test::Process training(STRAIT_PROGRAM, arguments("cut", first));
  wait_for_checkpoint("cut", {}, [&] { return training.has_ended(); });
  training.send(SIGTERM);
  EXPECT_EQ(training.wait().status, 128 + 2);
  auto rest = first;
  rest.emplace_back("--resume");
  ASSERT_EQ(train("cut", rest).status, 0);
  double seconds = 0;
  for (const auto& epoch : test::metrics_of(dir_ / "cut")) {
    const json& network = epoch.at("networks").at("home");
    seconds += network.at("step_seconds").get<double>() * epoch.at("steps").get<double>();
    EXPECT_NEAR(network.at("seconds"), seconds, 1e-9);
  }
  // Networks change nothing that is trained.
  EXPECT_EQ(test::read_file(dir_ / "cut/model.safetensors"), test::read_file(whole() + "/model.safetensors"));
}

TEST_F(Frontier, AResumeMayAddANetworkWhoseTimeBeginsThere) {
  const std::vector<std::string> often = {"--set", "checkpoint.every_steps=4"};
  test::Process training(STRAIT_PROGRAM, arguments("cut", often));
  wait_for_checkpoint("cut", {}, [&] { return training.has_ended(); });
  training.send(SIGTERM);
  EXPECT_EQ(training.wait().status, 128 + 2);
  const size_t before = test::metrics_of(dir_ / "cut").size();
  const auto resumed = train("cut", {"--resume", "--set", R"(networks=[{name="home",bandwidth="1Mbps"}])",
                                     "--set", "train.log_every=2", "--set", "checkpoint.every_steps=4"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  double seconds = 0;
  const auto epochs = test::metrics_of(dir_ / "cut");
  ASSERT_GT(epochs.size(), before);
  for (size_t i = 0; i < epochs.size(); ++i) {
    EXPECT_EQ(epochs[i].contains("networks"), i >= before) << i;
    if (i < before) continue;
    const json& network = epochs[i].at("networks").at("home");
    seconds += network.at("step_seconds").get<double>() * epochs[i].at("steps").get<double>();
    EXPECT_NEAR(network.at("seconds"), seconds, 1e-9);
  }
}

TEST_F(Frontier, SaysWhoNeverGetsThere) {
  const auto result =
      frontier({sweep(), "--network", "100Mbps,5ms", "--target", "accuracy=100", "--score", "off"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("over 100 Mbps with 5 ms latency; accuracy >= 100 on the test set, compression off"),
            HasSubstr("0 of 2 never reaches it")));
  const json rows = frontier_json({sweep(), "--network", "100Mbps", "--target", "loss=0"}).at("rows");
  EXPECT_EQ(rows.size(), 2U);
  for (const auto& row : rows) EXPECT_TRUE(row.at("seconds").is_null() && row.at("over_none").is_null());
}

TEST_F(Frontier, LongTimesHaveNoPowersOfTen) {
  const auto result =
      frontier({sweep(), "--network", "unlimited", "--target", "loss=100", "--stages", "3000,3000,3000,3000"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex(" [0-9]{5,} \\+- [0-9]+ s "));
}

TEST_F(Frontier, ThePageOfAReportHasTheSameTimes) {
  const auto written = test::run_process(STRAIT_PROGRAM, {"report", sweep(), "--out", dir_ / "page.html"});
  ASSERT_EQ(written.status, 0) << written.err;
  const json data = test::page_data_of(dir_ / "page.html");
  const json& networks = data.at("networks");
  EXPECT_EQ(networks.at("rates").at(1), json({{"text", "20 Mbps"}, {"bits_per_second", 2e7}}));
  EXPECT_EQ(networks.at("latencies").at(2), "50 ms");
  const size_t network = 1 * networks.at("latencies").size() + 2;
  const json& variants = data.at("tables").at(0).at("variants");
  // What the first run reaches last and not at its first evaluation: all runs differ in when, or whether.
  double target = 0;
  for (const auto& score : variants.at(0).at("runs").at(0).at("timed"))
    target = std::max(target, score.at("off").get<double>());
  const json rows = frontier_json({sweep(), "--network", "20Mbps,50ms", "--target",
                                   fmt::format("accuracy={}", target), "--score", "off"})
                        .at("rows");
  int reached = 0;
  for (const auto& variant : variants) {
    const auto row =
        std::ranges::find(rows, variant.at("name"), [](const json& one) { return one.at("variant"); });
    ASSERT_NE(row, rows.end());
    std::vector<double> seconds;
    for (const auto& run : variant.at("runs")) {
      ASSERT_EQ(run.at("timed").size(), 10U) << "after every 3 of 24 steps, and after epochs of 8";
      for (const auto& score : run.at("timed")) {
        if (score.at("off") < target) continue;
        seconds.push_back(score.at("seconds").at(network));
        break;
      }
    }
    EXPECT_EQ(row->at("reached"), seconds.size());
    if (seconds.empty()) continue;
    ++reached;
    const double mean =
        std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
    EXPECT_NEAR(row->at("seconds"), mean, 1e-5 * mean) << "six digits";
  }
  EXPECT_GT(reached, 0);
}

TEST_F(Frontier, FasterStagesMakeTheWireCount) {
  const auto share = [&](const std::string& compute) {
    return frontier_json({sweep(), "--network", "1Mbps", "--target", "loss=100", "--compute", compute})
        .at("rows")
        .at(0)
        .at("over_none")
        .get<double>();
  };
  EXPECT_LT(share("100"), share("0.01"));
}

TEST_F(Frontier, StagesMayBeTheSameForAllRuns) {
  // Four stages, which each take a second for a micro-batch, and two micro-batches: 4 s until the first is
  // through, 1 s for the other one; links and codecs take next to nothing.
  const auto rows =
      frontier_json({sweep(), "--network", "unlimited", "--target", "loss=100", "--stages", "1,1,1,1"})
          .at("rows");
  ASSERT_GT(rows.size(), 1U);
  for (const auto& row : rows) EXPECT_NEAR(row.at("step_seconds"), 5, 0.05) << row;
  const auto before =
      frontier_json({"--network", "unlimited", "--target", "loss=100", "--stages", "1,1,1,1", sweep()});
  EXPECT_EQ(before.at("rows").size(), rows.size()) << "the folder behind the flag is a folder";
  const auto fast = frontier_json(
      {sweep(), "--network", "unlimited", "--target", "loss=100", "--stages", "1,1,1,1", "--compute", "2"});
  EXPECT_NEAR(fast.at("rows").at(0).at("step_seconds"), 2.5, 0.05);
}

TEST_F(Frontier, ANetworkMayKnowItsStages) {
  const auto step = [&](const std::string& compute) {
    const auto found =
        frontier_json({sweep(), "--network", "known", "--target", "loss=100", "--compute", compute});
    return found.at("rows").at(0).at("step_seconds").get<double>();
  };
  EXPECT_NEAR(step("1"), 5, 0.05);
  EXPECT_NEAR(step("2"), 2.5, 0.05);
  const auto two_stages = train("two-stages", {"--set", "model.cuts=[\"layer2\"]", "--set", "train.epochs=1"});
  ASSERT_EQ(two_stages.status, 0) << two_stages.err;
  expect_refused({sweep(), dir_ / "two-stages", "--network", "known", "--target", "loss=100"},
                 "--network: stage_seconds of \"known\": expected the seconds of 2 stages, as ");
}

TEST_F(Frontier, RefusesWhatItCannotJudge) {
  expect_refused({sweep(), "--network", "1Mbps", "--target", "loss=1", "--stages", "1,2"},
                 "--stages: expected the seconds of ");
  expect_refused({sweep(), "--network", "20ms", "--target", "loss=1"},
                 "--network: expected a rate of at least 1kbps");
  expect_refused({sweep(), "--network", "100bps", "--target", "loss=1"},
                 "--network: expected a rate of at least 1kbps");
  expect_refused({sweep(), "--network", "1Mbps", "--target", "speed=1"},
                 "--target: expected \"loss\", \"perplexity\" or \"accuracy\" and a value, such as loss=1.4; "
                 "found \"speed=1\"");
  expect_refused({sweep(), "--network", "1Mbps", "--target", "perplexity=10"},
                 "expected scores with the target's metric \"perplexity\", found loss, accuracy");
  expect_refused({dir_ / "nothing", "--network", "1Mbps", "--target", "loss=1"}, "nothing");
  expect_refused({sweep(), "--target", "loss=1"}, "needs --network RATE,TIME|NAME");
  expect_refused({sweep(), "--network", "hom", "--target", "loss=1"},
                 "or one of the runs' networks, which are home, known, near (did you mean \"home\"?)\n");
  for (const std::string wrong : {"0", "-2", "abc", "inf", "1x"}) {
    expect_refused({sweep(), "--network", "1Mbps", "--target", "loss=1", "--compute=" + wrong},
                   "--compute: expected a number > 0, found \"" + wrong + "\"\n");
  }
  expect_refused({sweep(), "--network", "1Mbps", "--target", "loss=1", "--stages", "0.1,0.1,x"},
                 "--stages: expected a number > 0, found \"x\"\n");
  expect_refused({sweep(), "--network", "1Mbps", "--target", "loss=1", "--stages", "0.1,,0.1"},
                 "--stages: expected a number > 0, found \"\"\n");
}

}  // namespace
}  // namespace strait
