#include "strait/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

class RunInAFolder : public testing::Test {
 protected:
  void make_checkpoint(const std::string& home) {
    std::filesystem::create_directories(folder_ / "checkpoint" / home / "epoch-0001-batch-00000");
  }
  void clear() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  void write(const std::string& name, const std::string& text = "") {
    clear();
    test::write_file(folder_ / name, text);
  }

  std::string complaint(void (*check)(const std::filesystem::path&)) {
    return test::message_of<InputError>([&] { check(folder_); });
  }

  test::TempDir dir_;
  std::filesystem::path folder_ = dir_ / "run";
};

TEST_F(RunInAFolder, HasLeftItsStatusItsMetricsOrACheckpoint) {
  EXPECT_FALSE(holds_run(folder_)) << "there is no folder";
  for (const char* name : {"status.json", "metrics.jsonl"}) {
    write(name);
    EXPECT_TRUE(holds_run(folder_)) << name;
    EXPECT_FALSE(holds_results(folder_)) << name;
  }
  for (const char* home : {".", "copies/rank-1", "rank-2", "rank-2/copies/rank-0"}) {
    clear();
    make_checkpoint(home);
    EXPECT_TRUE(holds_run(folder_)) << home;
    EXPECT_TRUE(holds_results(folder_)) << home;
  }
  write("metrics.jsonl", "{}\n");
  EXPECT_TRUE(holds_results(folder_));
  write("config.toml", "seed = 1\n");
  std::filesystem::create_directories(folder_ / "checkpoint/mine");
  EXPECT_FALSE(holds_run(folder_));
  EXPECT_FALSE(holds_results(folder_));
}

TEST_F(RunInAFolder, TakesNoFilesThatAreNoRuns) {
  EXPECT_NO_THROW(check_is_free(folder_)) << "there is no folder";
  for (const std::string name :
       {"config.json", "model.safetensors", "steps.jsonl", "events.out.tfevents.1.host"}) {
    write(name);
    const std::string expected = folder_.string() + ": holds " + name +
                                 ", which a run may replace; choose another --out, or let it with --overwrite";
    EXPECT_EQ(complaint(check_is_free), expected);
    EXPECT_EQ(complaint(check_replaces_nothing), expected);
  }
  write("config.toml");
  EXPECT_TRUE(complaint(check_is_free).starts_with(folder_.string() + ": holds config.toml, which a run"));
  EXPECT_NO_THROW(check_replaces_nothing(folder_)) << "it may be of a run that was killed as it began";
  write("status.json");
  EXPECT_TRUE(complaint(check_is_free).starts_with(folder_.string() + ": holds a run already"));
}

TEST_F(RunInAFolder, ComesBesideWhatItDoesNotTouch) {
  clear();
  for (const char* name : {"next.toml", "log.txt", ".launch", ".lock", "train.txt", "events.txt"}) {
    test::write_file(folder_ / name, "");
  }
  EXPECT_NO_THROW(check_is_free(folder_));
}

TEST_F(RunInAFolder, GetsRidOfWhatKilledProcessesLeftOfItsFiles) {
  clear();
  for (const char* name : {"model.safetensors", "status.json", "config.json", "mine.bin"}) {
    test::write_file(folder_ / name, "");
    test::write_file(folder_ / (std::string(name) + ".7-1.partial"), "");
  }
  clear_unfinished(folder_);
  EXPECT_THAT(test::names_in(folder_), testing::ElementsAre("config.json", "mine.bin", "mine.bin.7-1.partial",
                                                            "model.safetensors", "status.json"));
}

}  // namespace
}  // namespace strait
