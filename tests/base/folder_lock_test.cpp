#include "strait/base/folder_lock.h"

#include <gtest/gtest.h>

#include <optional>

#include "strait/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

std::string complaint(const fs::path& folder, const std::string& suffix = "") {
  return test::error_of<InputError>([&] { const FolderLock lock(folder, suffix); });
}

TEST(FolderLock, OneHoldsItAtATime) {
  const test::TempDir dir;
  std::optional<FolderLock> lock(dir / "run");
  EXPECT_EQ(complaint(dir / "run"), (dir / "run").string() + ": another process trains here");
  EXPECT_EQ(complaint(dir / "run"), (dir / "run").string() + ": another process trains here")
      << "one that was refused must not have freed it";
  EXPECT_EQ(complaint(dir / "run", "-rank-1"), "");
  EXPECT_EQ(complaint(dir / "other"), "");
  lock.reset();
  EXPECT_EQ(complaint(dir / "run"), "");
}

TEST(FolderLock, LeavesNothingBehind) {
  const test::TempDir dir;
  { const FolderLock lock(dir / "a/b/c/"); }
  EXPECT_FALSE(fs::exists(dir / "a"));
  fs::create_directories(dir / "mine");
  { const FolderLock lock(dir / "mine"); }
  EXPECT_TRUE(fs::exists(dir / "mine")) << "not made by the lock";
  {
    const FolderLock lock(dir / "a/b");
    test::write_file(dir / "a/b/result", "");
  }
  EXPECT_TRUE(fs::exists(dir / "a/b/result"));
  EXPECT_FALSE(fs::exists(dir / "a/b/.lock"));
}

TEST(FolderLock, AFileThatWasLeftBehindLocksNothing) {
  const test::TempDir dir;
  test::write_file(dir / ".lock", "");
  EXPECT_EQ(complaint(dir.path()), "");
}

TEST(FolderLock, AFolderThatCannotBeIsNamed) {
  const test::TempDir dir;
  test::write_file(dir / "file", "");
  EXPECT_EQ(complaint(dir / "file"), (dir / "file").string() + ": cannot make the folder: Not a directory");
  EXPECT_EQ(complaint(dir / "file/run"),
            (dir / "file/run").string() + ": cannot make the folder: Not a directory");
  fs::create_directories(dir / "run/.lock");
  EXPECT_EQ(complaint(dir / "run"), (dir / "run").string() + ": cannot be written: Is a directory");
}

}  // namespace
}  // namespace strait
