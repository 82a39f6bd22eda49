#include "strait/base/files.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

TEST(ReplaceFile, WritesAndReplaces) {
  const test::TempDir dir;
  replace_file(dir / "a.txt", "one");
  replace_file(dir / "a.txt", "two and more");
  EXPECT_EQ(test::read_file(dir / "a.txt"), "two and more");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(ReplaceFile, NamesTheFileThatCannotBeWritten) {
  const test::TempDir dir;
  try {
    replace_file(dir / "missing/a.txt", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("missing/a.txt: cannot be written: No such file"),
              std::string::npos)
        << error.what();
  }
}

TEST(ReplaceFile, AFullDiskLeavesTheOldContent) {
  // /dev/full answers every write with "no space left", so stand in for the temporary file with it.
  const test::TempDir dir;
  replace_file(dir / "a.txt", "old");
  std::filesystem::create_symlink("/dev/full", dir / "a.txt.partial");
  EXPECT_THROW(replace_file(dir / "a.txt", "new"), Error);
  EXPECT_EQ(test::read_file(dir / "a.txt"), "old");
  EXPECT_FALSE(std::filesystem::exists(dir / "a.txt.partial"));
}

}  // namespace
}  // namespace strait
