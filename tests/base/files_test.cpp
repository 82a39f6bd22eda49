#include "strait/base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "strait/base/error.h"
#include "tests/support/errors.h"
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

TEST(ReplaceFile, AnErrorOfTheWriterLeavesTheOldContent) {
  const test::TempDir dir;
  replace_file(dir / "a.txt", "old");
  const auto fail = [](const ByteSink& sink) {
    sink(std::as_bytes(std::span("half")));
    throw InputError("no more");
  };
  EXPECT_THROW(replace_file(dir / "a.txt", fail), InputError);
  EXPECT_EQ(test::read_file(dir / "a.txt"), "old");
  EXPECT_FALSE(std::filesystem::exists(dir / "a.txt.partial"));
}

TEST(IsThere, TellsFilesAndFoldersFromWhatCannotBeLookedAt) {
  const test::TempDir dir;
  test::write_file(dir / "a.txt", "one");
  EXPECT_TRUE(is_there(dir / "a.txt") && has_file(dir / "a.txt") && !has_folder(dir / "a.txt"));
  EXPECT_TRUE(is_there(dir.path()) && !has_file(dir.path()) && has_folder(dir.path()));
  EXPECT_FALSE(is_there(dir / "b.txt") || has_file(dir / "b.txt") || has_folder(dir / "a.txt/b"));
  std::filesystem::create_symlink("loop", dir / "loop");
  const std::string loop = (dir / "loop").string();
  for (const auto look : {is_there, has_file, has_folder}) {
    EXPECT_EQ(test::message_of<InputError>([&] { look(loop); }),
              loop + ": cannot be read: Too many levels of symbolic links");
    EXPECT_THAT(test::message_of<InputError>([&] { look(std::string(5000, 'a')); }),
                testing::HasSubstr("File name too long"));
  }
}

TEST(ReadWhole, NamesAFileThatMemoryHasNoRoomFor) {
  const test::TempDir dir;
  test::write_file(dir / "a.txt", "one");
  std::filesystem::resize_file(dir / "a.txt", uint64_t{1} << 42);  // takes no disk
  EXPECT_THAT(test::message_of<InputError>([&] { read_whole(dir / "a.txt"); }),
              testing::EndsWith("a.txt: has 4398046511104 bytes, more than memory has room for"));
}

TEST(SyncToDisk, TakesFilesAndFolders) {
  const test::TempDir dir;
  replace_file(dir / "a.txt", "one");
  EXPECT_NO_THROW(sync_to_disk(dir / "a.txt"));
  EXPECT_NO_THROW(sync_to_disk(dir.path()));
  EXPECT_THROW(sync_to_disk(dir / "b.txt"), Error);
}

TEST(InputFile, ReadsAnyPart) {
  const test::TempDir dir;
  test::write_file(dir / "a", "0123456789");
  const InputFile file(dir / "a");
  EXPECT_EQ(file.size(), 10U);
  std::string part(4, ' ');
  file.read(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "3456");
  std::filesystem::resize_file(dir / "a", 5);
  try {
    file.read(3, std::as_writable_bytes(std::span(part)));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("/a: ends at offset 5, expected 10 bytes"), std::string::npos);
  }
}

TEST(InputFile, NeverWaitsForAPipeAndNamesWhatIsNoFile) {
  const test::TempDir dir;
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  const auto complaint = [](const std::filesystem::path& path) {
    return test::message_of<InputError>([&] { InputFile file(path); });
  };
  EXPECT_EQ(complaint(dir / "pipe"), (dir / "pipe").string() + ": expected a file, found a pipe");
  EXPECT_EQ(complaint(dir.path()), dir.path().string() + ": expected a file, found a folder");
  EXPECT_EQ(complaint("/dev/zero"), "/dev/zero: expected a file, found a device or a socket");
  EXPECT_EQ(complaint(dir / "none"), (dir / "none").string() + ": cannot be opened: No such file or directory");
}

TEST(ReadWhole, HasALimit) {
  const test::TempDir dir;
  test::write_file(dir / "a", "12345");
  EXPECT_EQ(read_whole(dir / "a", 5), "12345");
  EXPECT_EQ(test::message_of<InputError>([&] { read_whole(dir / "a", 4); }),
            (dir / "a").string() + ": has 5 bytes, expected at most 4");
  std::filesystem::resize_file(dir / "a", uint64_t{1} << 40);  // sparse
  EXPECT_THROW(read_whole(dir / "a", kJsonBytesMost), InputError);
}

TEST(ReadWhole, GivesEveryByteOfARegularFile) {
  const test::TempDir dir;
  const std::string content("a\0\r\n\xff", 5);
  test::write_file(dir / "file", content);
  EXPECT_EQ(read_whole(dir / "file"), content);
  test::write_file(dir / "file", "");
  EXPECT_EQ(read_whole(dir / "file"), "");
  EXPECT_THROW(read_whole(dir / "none"), InputError);
  EXPECT_THROW(read_whole(dir.path()), InputError);
}

}  // namespace
}  // namespace strait
