// `strait doctor` with real processes, and `strait plan` over the links that it has measured.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/distributed_runs.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Doctor : public test::DistributedRuns {
 protected:
  /// In two processes, with one cut.
  test::ProcessResult launch(const std::vector<std::string>& flags) const {
    std::vector<std::string> words = {"launch", "-n",    "2",     "--",        "doctor",
                                      config_,  "--set", kOneCut, "--seconds", "0.05"};
    words.insert(words.end(), flags.begin(), flags.end());
    return test::run_process(STRAIT_PROGRAM, words);
  }

  test::ProcessResult plan(const std::string& links, const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> words = {"plan", config_, "--set", kOneCut, "--links", links};
    words.insert(words.end(), flags.begin(), flags.end());
    return test::run_process(STRAIT_PROGRAM, words);
  }

  static constexpr const char* kOneCut = R"(model.cuts=["layer2"])";
  std::string file_ = dir_ / "links.json";
};

TEST_F(Doctor, MeasuresTheLinksOfALaunchAndPlansOverThem) {
  const auto result = launch({"--ranks", "--out", file_});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("[0]   ranks "),
                                HasSubstr("[0]   0 - 1     boundary layer2          on one machine "),
                                HasSubstr("strait 0."), HasSubstr(", LibTorch "),
                                HasSubstr("[1] rank 1 is done; rank 0 says what was found\n")));
  const json found = json::parse(test::read_file(file_));
  EXPECT_EQ(found.at("schema"), 1);
  ASSERT_EQ(found.at("boundaries").size(), 1U);
  const json& boundary = found.at("boundaries").at(0);
  EXPECT_EQ(boundary.at("name"), "layer2");
  EXPECT_EQ(boundary.at("route"), "local");
  EXPECT_GT(boundary.at("activation_bits_per_second"), 1e6);
  EXPECT_GT(boundary.at("gradient_bits_per_second"), 1e6);
  EXPECT_EQ(found.at("ranks").size(), 2U);

  const auto text = plan(file_);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(
      text.out,
      AllOf(HasSubstr("  boundary  ranks      activations    gradients    latency\n  layer2    0 - 1 "),
            HasSubstr("over the links of " + file_ + "\n"), HasSubstr("over the links of " + file_ + ": ")));
  const auto printed = plan(file_, {"--json"});
  ASSERT_EQ(printed.status, 0) << printed.err;
  const json link = json::parse(printed.out).at("links").at(0);
  EXPECT_EQ(link.at("links_file"), file_);
  EXPECT_EQ(link.at("bandwidth_bits_per_second"), nullptr);
  const json& planned = link.at("boundaries").at(0);
  for (const char* key : {"activation_bits_per_second", "gradient_bits_per_second"}) {
    EXPECT_DOUBLE_EQ(planned.at(key), boundary.at(key));
  }
}

TEST_F(Doctor, APlanDependsOnTheLinksOfTheFile) {
  ASSERT_EQ(launch({"--ranks", "--out", file_}).status, 0);
  json links = json::parse(test::read_file(file_));
  json& boundary = links.at("boundaries").at(0);
  boundary["gradient_bits_per_second"] = 1e5;
  test::write_file(file_, links.dump());
  EXPECT_THAT(plan(file_).out,
              AllOf(HasSubstr(" 100 kbps "), HasSubstr("compression is worth it over the links of ")));
}

TEST_F(Doctor, AFileOfLinksThatDoesNotFitIsRefusedInOneLine) {
  ASSERT_EQ(launch({"--ranks", "--out", file_}).status, 0);
  const auto complaint = [&](const std::vector<std::string>& flags) {
    const auto result = plan(file_, flags);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_EQ(complaint({"--set", R"(model.cuts=["layer1", "layer2"])"}),
            "strait: " + file_ + ": ranks: expected 3, as the configuration has, found 2\n");
  EXPECT_EQ(complaint({"--set", R"(model.cuts=["layer1"])"}),
            "strait: " + file_ +
                ": boundaries[0].name: expected \"layer1\", as model.cuts has it, found \"layer2\"\n");
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--bandwidth", "1Mbps"}, {"--latency", "1ms"}, {"--stages", "3"}}) {
    EXPECT_THAT(complaint(other), AllOf(HasSubstr("--links"), HasSubstr(other.front())));
  }
  test::write_file(file_, R"({"made_by": "strait doctor", "schema": 7})");
  EXPECT_EQ(complaint({}),
            "strait: " + file_ + ": schema: expected 1, as this version of strait doctor makes it, found 7\n");
  std::filesystem::remove(file_);
  EXPECT_THAT(complaint({}), MatchesRegex("strait: " + file_ + ": [^\n]*\n"));
}

TEST_F(Doctor, NamesARankWithAnotherConfigurationAndItsMachine) {
  auto all = ranks();
  const std::vector<std::string> flags = {"doctor", config_, "--ranks", "--seconds", "0.05"};
  for (const int rank : {0, 1, 3}) all.start(rank, flags);
  auto other = flags;
  other.insert(other.end(), {"--set", "train.epochs=4"});
  all.start(2, other);
  const auto results = expect_all(all, 1);
  EXPECT_THAT(
      results.at(0).out,
      HasSubstr("wrong: rank 2 has train.epochs = 4, rank 0 train.epochs = 3; strait train refuses ranks "
                "that differ: give all the same configuration\n"));
  EXPECT_EQ(results.at(2).out, "rank 2 is done; rank 0 says what was found\n");
}

TEST_F(Doctor, AFileThatCannotBeWrittenEndsAllBeforeTheyMeasure) {
  const std::string file = dir_ / "no/such/links.json";
  auto all = ranks();
  all.start_all({"doctor", config_, "--ranks", "--seconds", "60", "--out", file});
  const auto results = all.wait(kLimit);
  const std::string reason = "--out: " + file + ": cannot be written: No such file or directory";
  EXPECT_EQ(results.at(0).status, 2);
  EXPECT_EQ(results.at(0).out, "");
  EXPECT_EQ(results.at(0).err, "strait: " + reason + "\n");
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_NE(results.at(rank).status, 0) << rank;
    EXPECT_THAT(results.at(rank).err, HasSubstr(reason)) << rank;
  }
}

TEST_F(Doctor, NamesDataThatIsNotThere) {
  const auto result = launch(
      {"--ranks", "--json", "--set", "data.kind=cifar10", "--set", "data.root=" + (dir_ / "nowhere").string()});
  EXPECT_EQ(result.status, 1);
  const json found = json::parse(result.out.substr(result.out.find('{')));
  ASSERT_EQ(found.at("findings").size(), 1U);
  EXPECT_EQ(found.at("findings").at(0).at("stops_the_run"), true);
  EXPECT_THAT(found.at("findings").at(0).at("text").get<std::string>(),
              AllOf(testing::StartsWith("ranks 0, 1: "), HasSubstr("nowhere")));
}

/// What slow_links.sh has rank 0 print.
class DoctorOverLinks : public Doctor {
 protected:
  std::string examined(const std::vector<std::string>& arguments = {}) {
    test::write_file(config_,
                     std::string("[model]\ncuts = [\"layer1\", \"layer3\"]\nwidth = 2\n") +
                         "[data]\nkind = \"shapes\"\ntrain_limit = 8\ntest_limit = 4\nbatch_size = 4\n");
    std::vector<std::string> words = {"tests/cli/slow_links.sh", STRAIT_PROGRAM, config_, dir_ / "out"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto result = test::run_process("/bin/bash", words);
    EXPECT_EQ(result.status, 0) << result.err;
    for (const std::string rank : {"0", "1", "2"}) {
      EXPECT_EQ(test::read_file(dir_ / "out" / ("err-" + rank)), "");
      EXPECT_EQ(test::read_file(dir_ / "out" / ("status-" + rank)), "0\n");
    }
    return test::read_file(dir_ / "out/out-0");
  }
};

TEST_F(DoctorOverLinks, TheSlowOneIsNamed) {
  EXPECT_THAT(examined(), AllOf(HasSubstr("note: rank 2 sends to rank 1 (boundary layer3) at "),
                                Not(HasSubstr("note: rank 1 sends")), Not(HasSubstr("through rank 0")),
                                HasSubstr("nothing of this keeps the run from working\n")));
  const json slow = json::parse(test::read_file(dir_ / "out/links.json")).at("boundaries").at(1);
  EXPECT_EQ(slow.at("route"), "direct");
  EXPECT_LT(slow.at("gradient_bits_per_second"), 10.5e6);
  EXPECT_GT(slow.at("gradient_bits_per_second"), 5e6);
  EXPECT_GT(slow.at("activation_bits_per_second"), 30e6);
}

TEST_F(DoctorOverLinks, RanksThatCannotReachEachOtherAreNamed) {
  EXPECT_THAT(
      examined({"apart"}),
      AllOf(HasSubstr("ranks 1 (10.77.0.2:"),
            HasSubstr(") cannot reach each other; their messages, of boundary layer3, go through rank 0"),
            HasSubstr("  1 - 2     boundary layer3          through rank 0 ")));
}

TEST_F(Doctor, LooksAtOneMachineAloneToo) {
  const auto result = test::run_process(STRAIT_PROGRAM, {"doctor", config_, "--folder", dir_ / "run"});
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("free memory"), HasSubstr("LibTorch"), Not(HasSubstr("latency"))));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
}

TEST_F(Doctor, WrongFlagsAreNamed) {
  const auto complaint = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> words = {"doctor", config_};
    words.insert(words.end(), flags.begin(), flags.end());
    const auto result = test::run_process(STRAIT_PROGRAM, words);
    EXPECT_EQ(result.status, 2);
    return result.err;
  };
  EXPECT_THAT(complaint({"--ranks"}), HasSubstr("doctor: --ranks: expected several processes"));
  EXPECT_THAT(complaint({"--out", file_}), AllOf(HasSubstr("--out"), HasSubstr("--ranks")));
  EXPECT_THAT(complaint({"--ranks", "--seconds", "0"}), HasSubstr("--seconds"));
  EXPECT_THAT(complaint({"--ranks", "--seconds", "nan"}), HasSubstr("--seconds"));
  EXPECT_THAT(complaint({"--ranks", "--out", config_}),
              HasSubstr("expected another file than the one that is read"));
}

}  // namespace
}  // namespace strait
