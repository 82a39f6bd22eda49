#include "strait/base/folder_lock.h"

#include <gtest/gtest.h>

#include <optional>

#include "strait/base/error.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

std::string error_of(const fs::path& folder, const std::string& suffix = "") {
  try {
    const FolderLock lock(folder, suffix);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(FolderLock, OneHoldsItAtATime) {
  const test::TempDir dir;
  std::optional<FolderLock> lock(dir / "run");
  EXPECT_EQ(error_of(dir / "run"), (dir / "run").string() + ": another process trains here");
  EXPECT_EQ(error_of(dir / "run"), (dir / "run").string() + ": another process trains here")
      << "one that was refused must not have freed it";
  EXPECT_EQ(error_of(dir / "run", "-rank-1"), "no error");
  EXPECT_EQ(error_of(dir / "other"), "no error");
  lock.reset();
  EXPECT_EQ(error_of(dir / "run"), "no error");
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
  EXPECT_EQ(error_of(dir.path()), "no error");
}

TEST(FolderLock, AFolderThatCannotBeIsNamed) {
  const test::TempDir dir;
  test::write_file(dir / "file", "");
  EXPECT_EQ(error_of(dir / "file"), (dir / "file").string() + ": cannot make the folder: Not a directory");
  EXPECT_EQ(error_of(dir / "file/run"),
            (dir / "file/run").string() + ": cannot make the folder: Not a directory");
  fs::create_directories(dir / "run/.lock");
  EXPECT_EQ(error_of(dir / "run"), (dir / "run").string() + ": cannot be written: Is a directory");
}

}  // namespace
}  // namespace strait
