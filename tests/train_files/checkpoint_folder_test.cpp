#include "strait/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class CheckpointFolderTest : public testing::Test {
 protected:
  /// A checkpoint whose only file holds its name.
  void add(CheckpointFolder& folder, int epoch, int64_t batches) {
    const CheckpointFolder::Entry entry{epoch, batches};
    folder.write(entry, [&](const fs::path& inside) { test::write_file(inside / "content", entry.name()); });
    folder.publish(entry);
    folder.prune();
  }

  Names names() const { return test::names_in(path_); }

  test::TempDir dir_;
  fs::path path_ = dir_ / "run/checkpoint";
};

TEST_F(CheckpointFolderTest, IsMadeWithTheFirstCheckpoint) {
  CheckpointFolder folder(path_, {});
  EXPECT_TRUE(folder.entries().empty());
  EXPECT_FALSE(fs::exists(path_));
  add(folder, 3, 20);
  EXPECT_EQ(names(), (Names{"epoch-0003-batch-00020"}));
  EXPECT_EQ(test::read_file(folder.path_of({3, 20}) / "content"), "epoch-0003-batch-00020");
}

TEST_F(CheckpointFolderTest, KeepsTheNewestInOrderOfTraining) {
  CheckpointFolder folder(path_, {.keep = 2});
  add(folder, 0, 100000);  // more digits than the name is padded to
  add(folder, 1, 0);
  EXPECT_EQ(folder.entries(), (std::vector<CheckpointFolder::Entry>{{0, 100000}, {1, 0}}));
  add(folder, 1, 5);
  add(folder, 10000, 0);
  EXPECT_EQ(names(), (Names{"epoch-0001-batch-00005", "epoch-10000-batch-00000"}));
}

TEST_F(CheckpointFolderTest, KeepsChosenEpochsBeyondTheCap) {
  CheckpointFolder folder(path_, {.keep = 1, .keep_epochs = {0, 2}});
  for (int epoch = 0; epoch < 5; ++epoch) {
    add(folder, epoch, 0);
    add(folder, epoch, 3);
  }
  EXPECT_EQ(names(), (Names{"epoch-0000-batch-00000", "epoch-0002-batch-00000", "epoch-0004-batch-00003"}));
  EXPECT_TRUE(folder.keeps(2));
  EXPECT_FALSE(folder.keeps(1));
}

TEST_F(CheckpointFolderTest, SaysWhenACheckpointIsDue) {
  const CheckpointFolder folder(path_, {.every_epochs = 3, .every_steps = 4, .keep_epochs = {5}});
  std::vector<int> epochs;
  std::vector<uint64_t> steps;
  for (int i = 1; i < 10; ++i) {
    if (folder.is_due_before(i)) epochs.push_back(i);
    if (folder.is_due_after(static_cast<uint64_t>(i))) steps.push_back(static_cast<uint64_t>(i));
  }
  EXPECT_EQ(epochs, (std::vector<int>{3, 5, 6, 9}));
  EXPECT_EQ(steps, (std::vector<uint64_t>{4, 8}));
  EXPECT_TRUE(folder.is_due_after(9, 2)) << "the eighth was one of the last two";
  EXPECT_FALSE(folder.is_due_after(7, 3));
  const CheckpointFolder never(path_, {.every_epochs = 0});
  EXPECT_FALSE(never.is_due_before(1));
  EXPECT_FALSE(never.is_due_after(1));
}

TEST_F(CheckpointFolderTest, AFailedWriteLeavesTheEarlierCheckpoint) {
  CheckpointFolder folder(path_, {});
  add(folder, 1, 0);
  const auto fail = [](const fs::path& inside) {
    test::write_file(inside / "content", "half");
    throw Error("the disk is full");
  };
  EXPECT_THROW(folder.write({2, 0}, fail), Error);
  EXPECT_EQ(names(), (Names{"epoch-0001-batch-00000"}));
}

TEST_F(CheckpointFolderTest, WhatACrashLeftIsNoCheckpointAndGoesWithTheNext) {
  CheckpointFolder folder(path_, {});
  add(folder, 1, 0);
  for (const char* name : {"epoch-0002-batch-00000.partial", "epoch-0001-batch-00000.removed"}) {
    fs::create_directories(path_ / name);
    test::write_file(path_ / name / "content", "half");
  }
  EXPECT_EQ(folder.entries(), (std::vector<CheckpointFolder::Entry>{{1, 0}}));
  add(folder, 2, 0);
  EXPECT_EQ(names(), (Names{"epoch-0002-batch-00000"}));
}

TEST_F(CheckpointFolderTest, APositionIsWrittenOnce) {
  CheckpointFolder folder(path_, {});
  add(folder, 1, 0);
  folder.write({1, 0}, [](const fs::path&) { FAIL() << "written again"; });
  EXPECT_EQ(names(), (Names{"epoch-0001-batch-00000"}));
}

TEST_F(CheckpointFolderTest, ForeignNamesAreNotTouched) {
  CheckpointFolder folder(path_, {});
  const Names foreign = {"epoch-1-batch-2", "epoch-0001-batch-00002x", "notes"};
  for (const auto& name : foreign) fs::create_directories(path_ / name);
  add(folder, 1, 0);
  EXPECT_EQ(folder.entries().size(), 1U);
  folder.clear();
  EXPECT_TRUE(folder.entries().empty());
  EXPECT_EQ(names(), (Names{"epoch-0001-batch-00002x", "epoch-1-batch-2", "notes"}));
}

// Nobody may take it for a run without a checkpoint, and begin that anew.
TEST_F(CheckpointFolderTest, AFolderThatCannotBeReachedIsNamed) {
  constexpr const char* kCircle = ": cannot be read: Too many levels of symbolic links";
  fs::create_directories(path_.parent_path());
  fs::create_symlink("checkpoint", path_);  // to itself
  const CheckpointFolder folder(path_, {});
  EXPECT_EQ(test::message_of<InputError>([&] { folder.entries(); }), path_.string() + kCircle);
  EXPECT_EQ(test::message_of<InputError>([&] { CheckpointFolder::homes_in(path_); }), path_.string() + kCircle);
  fs::remove(path_);
  fs::create_directories(path_);
  fs::create_symlink("inside", path_ / "inside");
  EXPECT_EQ(test::message_of<InputError>([&] { folder.entries(); }), (path_ / "inside").string() + kCircle);
}

TEST_F(CheckpointFolderTest, AFolderThatCannotBeMadeIsNamed) {
  test::write_file(dir_ / "run", "a file");
  CheckpointFolder folder(path_, {});
  try {
    add(folder, 1, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot make the folder"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace strait
