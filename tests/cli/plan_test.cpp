#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kConfig = R"(name = "tiny"
[model]
width = 2
[data]
kind = "shapes"
train_limit = 20
test_limit = 10
batch_size = 10
[train]
epochs = 1
threads = 1
[pipeline]
micro_batches = 5
[compression]
activations = { codec = "quant:4", feedback = "none" }
gradients = { codec = "quant:4", feedback = "none" }
)";

class PlanVerb : public testing::Test {
 protected:
  PlanVerb() { test::write_file(config_, kConfig); }

  static test::ProcessResult plan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "plan");
    return test::run_process(STRAIT_PROGRAM, arguments);
  }

  static json plan_json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const auto result = plan(std::move(arguments));
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out);
  }

  /// A run of the configuration with known stage times.
  std::string run_with_stages() {
    const std::string folder = dir_ / "run";
    EXPECT_EQ(test::run_process(STRAIT_PROGRAM, {"train", config_, "--out", folder}).status, 0);
    json epoch = test::metrics_of(folder).back();
    epoch["stages"] = json::array();
    for (const char* name : {"a", "b", "c", "d"}) {
      epoch["stages"].push_back({{"name", name}, {"forward_seconds", 0.01}, {"backward_seconds", 0.02}});
    }
    epoch["samples_per_second"] = 40;
    test::write_file(folder + "/metrics.jsonl", epoch.dump() + "\n");
    return folder;
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& words) {
    const auto result = plan(arguments);
    EXPECT_EQ(result.status, 2) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(testing::StartsWith("strait: "), HasSubstr(words)));
  }

  test::TempDir dir_;
  std::string config_ = dir_ / "tiny.toml";
};

TEST_F(PlanVerb, SaysWhatIsWorthItOverEachLink) {
  const auto result = plan({config_, "--bandwidth", "1Mbps", "--bandwidth", "unlimited", "--latency", "20ms"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("tiny: 4 stages in 4 processes, schedule 1f1b, 5 micro-batches of 2 samples"),
                    HasSubstr("over 1 Mbps with 20 ms latency"),
                    HasSubstr("over an unlimited link with 20 ms latency")));
  EXPECT_THAT(result.out,
              HasSubstr("compression is worth it over 1 Mbps with 20 ms latency: topk:0.1,values=quant:8"));
  EXPECT_THAT(result.out, HasSubstr("<- the configuration"));
  EXPECT_THAT(result.out, HasSubstr("Accuracy is not in this table"));
}

TEST_F(PlanVerb, JsonHoldsEveryLinkAndCodec) {
  const json found = plan_json(
      {config_, "--bandwidth", "1Mbit/s", "--bandwidth", "100Mbps", "--latency", "0", "--latency", "1s"});
  ASSERT_EQ(found.at("links").size(), 4U);
  EXPECT_EQ(found.at("processes"), 4);
  EXPECT_EQ(found.at("measurement").at("stages").size(), 4U);
  for (const auto& link : found.at("links")) {
    ASSERT_EQ(link.at("rows").size(), 8U);
    const json& none = link.at("rows").at(0);
    EXPECT_EQ(none.at("codec"), "none");
    EXPECT_EQ(none.at("speedup"), 1);
    double least = none.at("step_seconds");
    for (const auto& row : link.at("rows")) {
      double sum = 0;
      for (const auto& part : row.at("seconds_by")) sum += part.get<double>();
      EXPECT_NEAR(sum, row.at("step_seconds"), 1e-9);
      EXPECT_NEAR(row.at("samples_per_second").get<double>() * row.at("step_seconds").get<double>(), 10, 1e-9);
      least = std::min(least, row.at("step_seconds").get<double>());
    }
    const auto best =
        std::ranges::find(link.at("rows"), link.at("best"), [](const json& row) { return row.at("codec"); });
    ASSERT_NE(best, link.at("rows").end());
    EXPECT_EQ(best->at("step_seconds"), least);
    EXPECT_EQ(link.at("rows").back().at("own"), true);
    EXPECT_LE(link.at("ideal_step_seconds"), link.at("predicted_step_seconds"));
  }
  const json& links = found.at("links");
  EXPECT_EQ(links[0].at("bandwidth_bits_per_second"), 1e6);
  EXPECT_EQ(links[0].at("rows")[0].at("bound"), "wire");
  EXPECT_EQ(links[3].at("latency_seconds"), 1);
  EXPECT_EQ(links[3].at("rows")[0].at("bound"), "latency");
}

TEST_F(PlanVerb, StagesCanBeAssumed) {
  const json found = plan_json({config_, "--stages", "200", "--bandwidth", "10Mbps"});
  EXPECT_EQ(found.at("stages"), 200);
  EXPECT_EQ(found.at("processes"), 200);
  EXPECT_EQ(found.at("equal_stages_assumed"), true);
  const auto text = plan({config_, "--stages", "8", "--set", "pipeline.schedule=interleaved", "--set",
                          "pipeline.stages_per_rank=2"});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("8 stages in 4 processes"), HasSubstr("assumed: stages of equal cost")));
}

TEST_F(PlanVerb, ShowsTheVersionsOfWeightsThatAStreamKeeps) {
  const auto text = plan({config_, "--set", "pipeline.schedule=pipedream"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("weights\n"), HasSubstr(" 4 x 0.0 MB\n"), HasSubstr(" 1 x 0.0 MB\n")));
  const json stages =
      plan_json({config_, "--set", "pipeline.schedule=pipedream"}).at("measurement").at("stages");
  EXPECT_EQ(stages.at(0).at("weight_versions"), 4);
  EXPECT_EQ(stages.at(3).at("weight_versions"), 1);
  EXPECT_GT(stages.at(3).at("weight_bytes"), stages.at(0).at("weight_bytes"));
  EXPECT_THAT(plan({config_}).out, testing::Not(HasSubstr("weights\n")));
}

TEST_F(PlanVerb, AMeasuredRunStandsBesideItsPrediction) {
  const std::string run = run_with_stages();
  const json found = plan_json({"--measured", run});
  EXPECT_EQ(found.at("measured_step_seconds"), 0.25);
  // One forward and one backward of each stage, and three more micro-batches than there are stages but one.
  EXPECT_NEAR(found.at("ideal_step_seconds"), (4 - 1 + 5) * 0.03, 1e-9);
  EXPECT_NEAR(found.at("share_of_ideal"), 0.24 / 0.25, 1e-9);
  EXPECT_GT(found.at("predicted_step_seconds"), found.at("ideal_step_seconds"));
  EXPECT_NEAR(found.at("prediction_error"), found.at("predicted_step_seconds").get<double>() / 0.25 - 1, 1e-9);
  EXPECT_EQ(found.at("links").at(0).at("predicted_step_seconds"), found.at("predicted_step_seconds"));
  const auto text = plan({config_, "--measured", run, "--bandwidth", "100Mbps"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("measured in " + run + ": 250 ms per step, 40.0 samples/s"),
                              HasSubstr("over 100 Mbps: predicted "), HasSubstr("ideal ")));
}

TEST_F(PlanVerb, AMeasuredRunMustFit) {
  const std::string run = run_with_stages();
  expect_refused({config_, "--measured", run, "--set", "model.width=4"},
                 "--measured: " + run + "/config.toml has model.width = 2, the command line model.width = 4");
  expect_refused({config_, "--measured", run, "--set", "train.optimizer.kind=adamw"},
                 "has train.optimizer.kind = \"sgd\", the command line train.optimizer.kind = \"adamw\"");
  json epoch = test::metrics_of(run).back();
  epoch.erase("stages");
  test::write_file(run + "/metrics.jsonl", epoch.dump() + "\n");
  expect_refused({"--measured", run}, "metrics.jsonl: expected \"stages\"");
  expect_refused({"--measured", dir_ / "nowhere"}, "nowhere/config.toml");
}

TEST_F(PlanVerb, WrongFlagsAreNamed) {
  expect_refused({}, "expected CONFIG.toml or --measured DIR");
  expect_refused({config_, "--bandwidth", "100"},
                 "--bandwidth: expected a rate of at least 1kbps such as 100Mbps");
  expect_refused({config_, "--bandwidth", "999bps"}, "found \"999bps\"");
  expect_refused({config_, "--latency", "20"}, "--latency: expected a time such as 20ms");
  expect_refused({config_, "--stages", "0"}, "--stages must be an integer from 1");
  expect_refused({config_, "--stages", "many"}, "--stages must be an integer from 1");
  expect_refused({config_, "--stages", "2", "--set", "model.cuts=[]"}, "--stages: expected model.cuts");
  expect_refused({config_, "--bandwith", "1Gbps"}, "did you mean \"--bandwidth\"?");
}

}  // namespace
}  // namespace strait
