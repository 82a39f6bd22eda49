#include "strait/experiment/sweep_record.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;

class Record : public testing::Test {
 protected:
  Record() {
    Config other;
    other.name = "other-seed1";
    other.seed = 1;
    sweep_.runs = {{"run", Config{}, PaperFigures{93.0, 92.5}}, {"other", other, std::nullopt}};
  }

  json saved() { return json::parse(test::read_file(dir_ / "sweep/sweep.json")); }

  /// A run's folder with a status.json of this content.
  void write_status(const std::string& run, const json& status) {
    std::filesystem::create_directories(dir_ / ("sweep/" + run));
    test::write_file(dir_ / ("sweep/" + run + "/status.json"), status.dump());
  }
  json status_of(const std::string& run) {
    return json::parse(test::read_file(dir_ / ("sweep/" + run + "/status.json")));
  }

  test::TempDir dir_;
  Sweep sweep_{"s", "The title", {}};
};

TEST_F(Record, DescribesEveryRun) {
  SweepRecord record(sweep_, dir_ / "sweep");
  record.save();
  const json first = {{"variant", "run"},    {"seed", 0},
                      {"folder", "run"},     {"config_hash", config_hash(sweep_.runs[0].config)},
                      {"status", "waiting"}, {"paper", {{"off", 93.0}, {"on", 92.5}}}};
  const json second = {{"variant", "other"},
                       {"seed", 1},
                       {"folder", "other-seed1"},
                       {"config_hash", config_hash(sweep_.runs[1].config)},
                       {"status", "waiting"}};
  EXPECT_EQ(saved(), (json{{"name", "s"}, {"title", "The title"}, {"runs", {first, second}}}));
}

TEST_F(Record, KnowsAnotherSweepByItsName) {
  SweepRecord record(sweep_, dir_ / "sweep");
  EXPECT_EQ(record.other_sweep(), std::nullopt);
  record.save();
  EXPECT_EQ(record.other_sweep(), std::nullopt);
  const Sweep another{"t", "The title", sweep_.runs};
  EXPECT_EQ(SweepRecord(another, dir_ / "sweep").other_sweep(), "s");
  for (const auto& [text, complaint] :
       std::map<std::string, std::string>{{"{", "is not JSON (at byte 2)"},
                                          {"[]", "expected an object, found array"},
                                          {"{}", "name: missing"},
                                          {R"({"name": 1})", "name: expected a string, found 1"}}) {
    test::write_file(dir_ / "sweep/sweep.json", text);
    EXPECT_EQ(test::message_of<InputError>([&] { record.other_sweep(); }),
              (dir_ / "sweep/sweep.json").string() + ": " + complaint);
  }
}

TEST_F(Record, NotesHowARunEnds) {
  SweepRecord record(sweep_, dir_ / "sweep");
  record.set(0, {RunStatus::diverged, ""});
  record.set(1, {RunStatus::failed, "no such file"});
  EXPECT_EQ(saved().at("runs").at(0).at("status"), "diverged");
  EXPECT_FALSE(saved().at("runs").at(0).contains("error"));
  EXPECT_EQ(saved().at("runs").at(1).at("status"), "failed");
  EXPECT_EQ(saved().at("runs").at(1).at("error"), "no such file");
  EXPECT_TRUE(record.is_finished(0));
  EXPECT_FALSE(record.is_finished(1));
}

TEST_F(Record, TakesUpWhatTheFoldersSayOfEqualConfigurations) {
  write_status("run", {{"status", "done"}, {"config_hash", config_hash(sweep_.runs[0].config)}});
  write_status("other-seed1", {{"status", "done"}, {"config_hash", "of another configuration"}});
  const SweepRecord record(sweep_, dir_ / "sweep");
  EXPECT_TRUE(record.is_finished(0));
  EXPECT_FALSE(record.state(1).status.has_value());
}

// A run that was stopped early and one that never began are both unfinished, but only the former would be lost.
TEST_F(Record, NamesRunsOfAnotherConfigurationThatHaveTrained) {
  Config before;
  before.train.epochs += 1;
  for (const std::string run : {"run", "other-seed1"}) {
    write_status(run, {{"status", "stopped"}, {"config_hash", config_hash(before)}});
    test::write_file(dir_ / ("sweep/" + run + "/config.toml"), to_toml(before));
  }
  std::filesystem::create_directories(dir_ / "sweep/run/checkpoint");
  const SweepRecord record(sweep_, dir_ / "sweep");
  EXPECT_EQ(record.others_trained({0, 1}), (std::vector<std::string>{"run (train.epochs)"}));
  EXPECT_EQ(record.others_trained({1}), std::vector<std::string>{});
  std::filesystem::remove(dir_ / "sweep/run/config.toml");
  EXPECT_EQ(record.others_trained({0, 1}), (std::vector<std::string>{"run (without its config.toml)"}));
}

// Without status.json nothing says whose they are.
TEST_F(Record, NamesResultsWithoutAStatus) {
  const auto folder = dir_ / "sweep/run";
  std::filesystem::create_directories(folder);
  const auto others = [&] { return SweepRecord(sweep_, dir_ / "sweep").others_trained({0, 1}); };
  test::write_file(folder / "metrics.jsonl", "");
  EXPECT_EQ(others(), std::vector<std::string>{});
  test::write_file(folder / "metrics.jsonl", "{}\n");
  EXPECT_EQ(others(), (std::vector<std::string>{"run (without its status.json)"}));
  std::filesystem::remove(folder / "metrics.jsonl");
  std::filesystem::create_directories(folder / "checkpoint/rank-1/epoch-0001-batch-00000");
  EXPECT_EQ(others(), (std::vector<std::string>{"run (without its status.json)"}));
}

TEST_F(Record, AStatusThatNoRunWroteConcernsItsRunAlone) {
  write_status("run", json::array());
  write_status("other-seed1", {{"status", "done"}, {"config_hash", config_hash(sweep_.runs[1].config)}});
  const std::string complaint = (dir_ / "sweep/run/status.json").string() + ": expected a JSON object";
  const SweepRecord record(sweep_, dir_ / "sweep");
  EXPECT_EQ(record.state(0).status, RunStatus::failed);
  EXPECT_EQ(record.state(0).error, complaint);
  EXPECT_TRUE(record.is_finished(1));
  EXPECT_EQ(record.others_trained({0, 1}), std::vector<std::string>{});
  record.save();
  EXPECT_EQ(saved().at("runs").at(0).at("error"), complaint);
}

TEST_F(Record, NamesWhatCannotBeReached) {
  constexpr const char* kCircle = ": cannot be read: Too many levels of symbolic links";
  const auto folder = dir_ / "sweep/run";
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink("status.json", folder / "status.json");  // to itself
  const auto take_up = [&] { SweepRecord(sweep_, dir_ / "sweep").others_trained({0}); };
  EXPECT_EQ(SweepRecord(sweep_, dir_ / "sweep").state(0).error, (folder / "status.json").string() + kCircle);
  EXPECT_EQ(test::message_of<InputError>([&] { record_failure(folder, "killed"); }),
            (folder / "status.json").string() + kCircle);

  std::filesystem::remove(folder / "status.json");
  write_status("run", {{"status", "stopped"}, {"config_hash", "of another configuration"}});
  std::filesystem::create_symlink("checkpoint", folder / "checkpoint");
  EXPECT_EQ(test::message_of<InputError>(take_up), (folder / "checkpoint").string() + kCircle);
}

TEST_F(Record, AFailureIsWrittenForARunThatCouldNot) {
  write_status("run", {{"status", "running"}, {"epochs_done", 3}});
  record_failure(dir_ / "sweep/run", "killed by signal Killed");
  const json killed = {{"status", "failed"}, {"epochs_done", 3}, {"error", "killed by signal Killed"}};
  EXPECT_EQ(status_of("run"), killed);
  record_failure(dir_ / "sweep/run", "another reason");
  EXPECT_EQ(status_of("run"), killed);
  EXPECT_NO_THROW(record_failure(dir_ / "sweep/nowhere", "no folder"));
}

}  // namespace
}  // namespace strait
