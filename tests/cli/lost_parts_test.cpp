// Machines that are lost, swapped or replaced by empty ones: the folder of each rank stands for its machine's
// disk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/distributed_runs.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

/// Every file below a folder with its content.
std::map<std::string, std::string> files_below(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& item : fs::recursive_directory_iterator(folder)) {
    if (item.is_regular_file()) files[item.path().string()] = test::read_file(item.path());
  }
  return files;
}

class LostParts : public test::DistributedRuns {
 protected:
  static std::string machine(int rank) { return "m" + std::to_string(rank); }

  /// Rank r trains on machine r.
  std::map<int, test::ProcessResult> train_on_machines(const std::vector<std::string>& flags,
                                                       int status = 0) const {
    test::RankProcesses all = ranks();
    for (int rank = 0; rank < kRanks; ++rank) all.start(rank, arguments(machine(rank), flags));
    return expect_all(all, status);
  }

  std::vector<std::string> epochs(const char* count, std::vector<std::string> flags = {}) const {
    flags.insert(flags.end(), {"--resume", "--set", std::string("train.epochs=") + count});
    return flags;
  }

  void lose(int rank) const { fs::remove_all(dir_ / machine(rank)); }
  void swap(int a, int b) const {
    fs::rename(dir_ / machine(a), dir_ / "between");
    fs::rename(dir_ / machine(b), dir_ / machine(a));
    fs::rename(dir_ / "between", dir_ / machine(b));
  }

  const std::vector<std::string> copies_ = {"--set", "checkpoint.copies=1"};
};

TEST_F(LostParts, AMissingPartIsNamedByAllAndNothingIsDeleted) {
  train_with_ranks("run", epochs("1"));
  fs::remove_all(dir_ / "run/checkpoint/rank-2");
  const auto before = files_below(dir_ / "run");
  for (const auto& [rank, result] : [&] {
         auto all = start("run", {"--resume"});
         return expect_all(all, 2);
       }()) {
    EXPECT_EQ(result.err,
              "strait: " + (dir_ / "run/checkpoint").string() +
                  ": epoch-0001-batch-00000 lacks the part of rank 2, which no rank has; bring it back, "
                  "or start anew with --overwrite\n");
    EXPECT_EQ(result.out, "");
  }
  EXPECT_TRUE(files_below(dir_ / "run") == before);
  const auto launched = test::run_process(STRAIT_PROGRAM, launch_arguments("run", {"--resume"}));
  EXPECT_EQ(launched.status, 2);
  EXPECT_TRUE(files_below(dir_ / "run") == before);
  // One process needs all parts.
  EXPECT_THAT(train("run", {"--resume"}).err, HasSubstr("lacks the part of rank 2"));
  EXPECT_TRUE(files_below(dir_ / "run") == before);
  train_with_ranks("run", {"--overwrite"});
  expect_equal_runs(whole(), "run");
}

TEST_F(LostParts, AnEmptyMachineInPlaceOfAnotherIsNamed) {
  train_on_machines(epochs("1"));
  lose(1);
  lose(3);
  const auto before = files_below(dir_ / machine(2));
  for (const auto& [rank, result] : train_on_machines({"--resume"}, 2)) {
    EXPECT_THAT(result.err,
                HasSubstr("epoch-0001-batch-00000 lacks the parts of ranks 1, 3, which no rank has"));
  }
  EXPECT_TRUE(files_below(dir_ / machine(2)) == before);
  EXPECT_FALSE(fs::exists(dir_ / machine(1)));
}

// The first rank's machine has the run's files too.
TEST_F(LostParts, OneLostMachineLosesNothing) {
  train_on_machines(epochs("1", copies_));
  lose(0);
  auto results = train_on_machines(epochs("2", copies_));
  EXPECT_THAT(results.at(0).out, HasSubstr("the part of rank 0 comes from rank 1"));
  EXPECT_THAT(results.at(0).out, HasSubstr("metrics.jsonl: is not what it was at the checkpoint"));
  lose(2);
  results = train_on_machines(epochs("3", copies_));
  EXPECT_THAT(results.at(0).out, HasSubstr("the part of rank 2 comes from rank 3\n"));
  expect_equal_runs(whole(), machine(0));
}

TEST_F(LostParts, TwoThatHeldThePartAndItsCopyAreNamed) {
  train_on_machines(epochs("1", copies_));
  lose(1);
  lose(2);  // with the copy of rank 1's
  const auto before = files_below(dir_ / machine(3));
  for (const auto& [rank, result] : train_on_machines(epochs("2", copies_), 2)) {
    EXPECT_THAT(result.err, HasSubstr("epoch-0001-batch-00000 lacks the part of rank 1, which no rank has"));
  }
  EXPECT_TRUE(files_below(dir_ / machine(3)) == before);
}

TEST_F(LostParts, SwappedMachinesBringEachRankItsPart) {
  train_on_machines(epochs("1"));
  swap(1, 3);
  train_on_machines(epochs("2"));
  swap(0, 2);  // the run's files with the first
  const auto results = train_on_machines({"--resume"});
  EXPECT_THAT(results.at(0).out,
              HasSubstr("the part of rank 0 comes from rank 2; the part of rank 2 comes from rank 0"));
  expect_equal_runs(whole(), machine(0));
}

TEST_F(LostParts, ADamagedPartIsNotTakenForAGoodOne) {
  train_on_machines(epochs("1", copies_));
  lose(0);
  const fs::path copy =
      dir_ / machine(1) / "checkpoint/rank-1/copies/rank-0/epoch-0001-batch-00000/model.safetensors";
  std::string bytes = test::read_file(copy);
  bytes.back() ^= 1;
  test::write_file(copy, bytes);
  test::RankProcesses all = ranks();
  for (int rank = 0; rank < kRanks; ++rank) all.start(rank, arguments(machine(rank), epochs("2", copies_)));
  const auto results = all.wait(kLimit);
  EXPECT_EQ(results.at(1).status, 2);
  EXPECT_THAT(results.at(1).err, HasSubstr(copy.string() + ": tensor"));
  EXPECT_THAT(results.at(3).err, ContainsRegex("rank 1 gave up: |the first to fail was rank 1: "));
  EXPECT_FALSE(fs::exists(dir_ / machine(0) / "checkpoint/epoch-0001-batch-00000"));
}

// Four ranks on four machines, then two on two of them that have two parts each.
TEST_F(LostParts, FewerProcessesGetAllPartsFromEachOther) {
  train_on_machines(epochs("1"));
  for (const int rank : {0, 2}) {
    const std::string other = "checkpoint/rank-" + std::to_string(rank + 1);
    fs::copy(dir_ / machine(rank + 1) / other, dir_ / machine(rank) / other, fs::copy_options::recursive);
  }
  test::RankProcesses two(STRAIT_PROGRAM, 2, free_port());
  const std::vector<std::string> flags = {"--resume", "--set", "pipeline.schedule=interleaved", "--set",
                                          "pipeline.stages_per_rank=2"};
  two.start(0, arguments(machine(0), flags));
  two.start(1, arguments(machine(2), flags));
  const auto results = expect_all(two, 0);
  EXPECT_THAT(results.at(0).out, HasSubstr("the part of rank 2 comes from rank 1"));
  expect_equal_runs(whole(), machine(0));
}

}  // namespace
}  // namespace strait
