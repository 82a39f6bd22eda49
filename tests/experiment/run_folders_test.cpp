// Into which folders a run may come, and what it leaves alone there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/experiment/launch_mark.h"
#include "strait/experiment/run.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

constexpr const char* kSmallRun = R"(name = "small"
[model]
kind = "mlp"
cuts = ["hidden.0"]
[data]
kind = "shapes"
train_limit = 40
test_limit = 20
batch_size = 20
[train]
epochs = 2
threads = 1
)";

class FolderOfARun : public testing::Test {
 protected:
  static Config config(const std::vector<std::string>& overrides = {}) {
    return parse_config(kSmallRun, "small.toml", overrides);
  }

  RunStatus run(const Config& config, Start start) {
    TrainObserver silent;
    return run_experiment(config, out_, start, silent).status;
  }

  std::string complaint(const Config& config, Start start) {
    try {
      run(config, start);
    } catch (const InputError& error) {
      const std::string begin = out_.string() + ": ";
      EXPECT_THAT(error.what(), StartsWith(begin));
      return std::string(error.what()).substr(begin.size());
    }
    return "no error";
  }

  /// Files of a person, of this name besides others, each with its name for content.
  void write_own(const std::vector<std::string>& names) {
    fs::remove_all(out_);
    fs::create_directory(out_);
    for (const auto& name : names) test::write_file(out_ / name, name);
  }

  test::TempDir dir_;
  fs::path out_ = dir_ / "out";
};

TEST_F(FolderOfARun, KeepsWhatIsNoRuns) {
  for (const std::string name :
       {"config.toml", "steps.jsonl", "events.out.tfevents.1.host", "model.safetensors"}) {
    write_own({name, "train.txt"});
    EXPECT_THAT(complaint(config(), Start::fresh), StartsWith("holds " + name + ", which a run may replace"));
    EXPECT_EQ(test::names_in(out_), (std::vector{name, std::string("train.txt")}));
    EXPECT_EQ(test::read_file(out_ / name), name);
  }
  write_own({"status.json"});
  EXPECT_THAT(complaint(config(), Start::fresh), StartsWith("holds a run already"));
  EXPECT_EQ(test::read_file(out_ / "status.json"), "status.json");
}

TEST_F(FolderOfARun, KeepsTheNetworkBesideAConfigurationThatIsToBeResumed) {
  write_own({"model.safetensors", "tokenizer.json"});
  test::write_file(out_ / "config.toml", kSmallRun);
  EXPECT_THAT(complaint(config(), Start::resume),
              StartsWith("holds model.safetensors, which a run may replace"));
  EXPECT_EQ(test::read_file(out_ / "model.safetensors"), "model.safetensors");
  EXPECT_EQ(test::read_file(out_ / "tokenizer.json"), "tokenizer.json");
  EXPECT_EQ(test::read_file(out_ / "config.toml"), kSmallRun);
  for (const std::string name : {"steps.jsonl", "events.out.tfevents.1.host"}) {
    write_own({name});
    EXPECT_THAT(complaint(config(), Start::resume), StartsWith("holds " + name + ", which a run may replace"));
    EXPECT_EQ(test::read_file(out_ / name), name);
  }
}

// As a run leaves its folder that is killed as it begins.
TEST_F(FolderOfARun, WithItsConfigurationAloneIsResumed) {
  write_own({});
  test::write_file(out_ / "config.toml", to_toml(config()));
  EXPECT_EQ(run(config(), Start::resume), RunStatus::done);
}

TEST_F(FolderOfARun, GetsBackWhatIsLostOfARunThatIsDone) {
  ASSERT_EQ(run(config(), Start::fresh), RunStatus::done);
  for (const char* name : {"config.toml", "metrics.jsonl", "model.safetensors"}) {
    const std::string before = test::read_file(out_ / name);
    fs::remove(out_ / name);
    EXPECT_EQ(run(config(), Start::resume), RunStatus::done);
    EXPECT_EQ(test::read_file(out_ / name), before) << name;
  }
  fs::remove(out_ / "model.safetensors");
  fs::remove_all(out_ / "checkpoint");
  EXPECT_EQ(run(config(), Start::resume), RunStatus::done) << "there is nothing to make it from";
  EXPECT_FALSE(fs::exists(out_ / "model.safetensors"));
}

TEST_F(FolderOfARun, MayHoldWhatSweepAndLaunchWriteBefore) {
  write_own({"next.toml", "log.txt", ".launch"});
  EXPECT_EQ(run(config(), Start::fresh), RunStatus::done);
  EXPECT_EQ(test::read_file(out_ / "next.toml"), "next.toml");
}

TEST_F(FolderOfARun, IsItsLaunchsEvenWhereItsFilesCannotAllBeWritten) {
  const test::Variable launch(kLaunchVariable, "a launch of this test");
  const fs::path events = out_ / "events.out.tfevents.1";
  fs::create_directories(events / "of somebody's");
  EXPECT_THROW(run(config(), Start::replace), Error);
  ASSERT_TRUE(fs::exists(out_ / "status.json"));
  fs::remove_all(events);
  EXPECT_EQ(run(config(), Start::fresh), RunStatus::done) << "the launch's second try";
  const test::Variable another(kLaunchVariable, "another launch");
  EXPECT_THAT(complaint(config(), Start::fresh), StartsWith("holds a run already"));
}

// It would be gone when the run begins.
TEST_F(FolderOfARun, IsNotTheOneThatTheRunComesFrom) {
  ASSERT_EQ(run(config({"checkpoint.keep_epochs=[1]"}), Start::fresh), RunStatus::done);
  const auto before = test::names_in(out_ / "checkpoint");
  const fs::path begun = out_ / "checkpoint/epoch-0001-batch-00000";
  fs::create_directory_symlink(out_, dir_ / "link");
  const auto expect_refused = [&](const Config& wrong, const std::string& what) {
    EXPECT_EQ(complaint(wrong, Start::replace),
              "holds " + what + ", which a run that begins there replaces; choose another --out");
    EXPECT_EQ(test::names_in(out_ / "checkpoint"), before);
    EXPECT_TRUE(fs::exists(out_ / "status.json"));
  };
  for (const auto& source : {out_, out_ / "checkpoint", begun, dir_ / "link", dir_ / "link/checkpoint"}) {
    const std::string from = "compression.start_from=\"" + source.string() + "\"";
    expect_refused(config({from, "compression.start_epoch=1"}), "the checkpoints of compression.start_from");
  }
  for (const auto& weights :
       {out_ / "model.safetensors", begun / "model.safetensors", dir_ / "link" / "model.safetensors"}) {
    expect_refused(config({"model.init=\"" + weights.string() + "\""}), "the weights of model.init");
  }
  fs::create_symlink(begun / "model.safetensors", dir_ / "weights");
  expect_refused(config({"model.init=\"" + (dir_ / "weights").string() + "\""}), "the weights of model.init");
  for (const auto& folder : {out_, begun}) {
    Config text = config();
    text.data = DataOptions("text", {{"tokenizer", folder.string()}});
    expect_refused(text, "the tokenizer of data.tokenizer");
  }
}

TEST_F(FolderOfARun, MayLieBesideTheOneThatTheRunComesFrom) {
  ASSERT_EQ(run(config({"checkpoint.keep_epochs=[1]"}), Start::fresh), RunStatus::done);
  const std::string source = out_.string();
  out_ = dir_ / "out/below";
  const Config warm = config({"compression.start_epoch=1", "compression.start_from=\"" + source + "\""});
  EXPECT_EQ(run(warm, Start::fresh), RunStatus::done);
  EXPECT_EQ(run(warm, Start::replace), RunStatus::done);
  EXPECT_EQ(run(config({"model.init=\"" + source + "/model.safetensors\""}), Start::replace), RunStatus::done);
}

}  // namespace
}  // namespace strait
