#include "strait/base/files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "strait/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/size_limit.h"
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
  const test::TempDir dir;
  replace_file(dir / "a.txt", "old");
  {
    const test::SizeLimit limit(1000);
    EXPECT_THAT(test::message_of<Error>([&] { replace_file(dir / "a.txt", std::string(1001, 'x')); }),
                testing::EndsWith("/a.txt: cannot be written: File too large"));
  }
  EXPECT_EQ(test::read_file(dir / "a.txt"), "old");
  EXPECT_THAT(test::names_in(dir.path()), testing::ElementsAre("a.txt"));
}

TEST(Disks, ThatAreFullAreNoWrongPath) {
  const auto full = [] {
    OutputFile file("/dev/full");
    file.write(std::as_bytes(std::span("x", 1)));
  };
  const std::string reason = "/dev/full: cannot be written: No space left on device";
  EXPECT_EQ(test::message_of<DiskError>(full), reason);
  EXPECT_EQ(test::message_of<DiskError>([&] { append_to_file("/dev/full", "x"); }), reason);
  EXPECT_EQ(test::message_of<DiskError>([&] { begin_in_folder(full); }), reason);
  const auto begin_with = [](std::errc error) {
    begin_in_folder(
        [&] { throw std::filesystem::filesystem_error("remove", "a", std::make_error_code(error)); });
  };
  EXPECT_EQ(test::message_of<DiskError>([&] { begin_with(std::errc::io_error); }), "a: Input/output error");
  EXPECT_EQ(test::message_of<InputError>([&] { begin_with(std::errc::permission_denied); }),
            "a: Permission denied");
}

TEST(Disks, OtherReasonsMakeTheFolderAWrongOne) {
  const test::TempDir dir;
  const auto write = [&](size_t bytes) {
    begin_in_folder([&] { replace_file(dir / "a.txt", std::string(bytes, 'x')); });
  };
  {
    const test::SizeLimit limit(1000);
    EXPECT_THAT(test::message_of<InputError>([&] { write(1001); }),
                testing::EndsWith("/a.txt: cannot be written: File too large"));
  }
  write(1001);
  EXPECT_EQ(test::read_file(dir / "a.txt").size(), 1001U);
}

TEST(ReplaceFile, ManyMayReplaceOneFileAtATime) {
  const test::TempDir dir;
  constexpr size_t kSize = 20'000;
  replace_file(dir / "a.txt", std::string(kSize, 'z'));
  std::vector<std::thread> writers;
  for (char letter = 'a'; letter < 'i'; ++letter) {
    writers.emplace_back([&, letter] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_NO_THROW(replace_file(dir / "a.txt", std::string(kSize, letter)));
        const std::string found = test::read_file(dir / "a.txt");
        EXPECT_TRUE(found.size() == kSize && found.find_first_not_of(found.front()) == std::string::npos)
            << found.size();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_THAT(test::names_in(dir.path()), testing::ElementsAre("a.txt"));
}

/// Of a process of the same number that was killed, and of somebody who knows which name comes next.
TEST(ReplaceFile, LeavesWhatHasATemporaryNameAlone) {
  const test::TempDir dir;
  test::write_file(dir / "a.txt.partial", "another's");
  test::write_file(dir / "other", "of value");
  const auto [first, descriptor] = make_beside(dir / "a.txt");
  ASSERT_GE(descriptor, 0);
  ::close(descriptor);
  EXPECT_EQ(std::filesystem::status(first).permissions() & std::filesystem::perms(0133),
            std::filesystem::perms());
  const std::string name = first.string();
  const std::string begin = name.substr(0, name.rfind('-') + 1);
  const int count = std::stoi(name.substr(begin.size()));
  EXPECT_EQ(name, fmt::format("{}.{}-{}.partial", (dir / "a.txt").string(), ::getpid(), count));
  std::filesystem::create_symlink("other", fmt::format("{}{}.partial", begin, count + 1));
  std::filesystem::create_symlink("new", fmt::format("{}{}.partial", begin, count + 2));
  test::write_file(fmt::format("{}{}.partial", begin, count + 3), "left behind");
  replace_file(dir / "a.txt", "new");
  EXPECT_EQ(test::read_file(dir / "a.txt"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(dir / "a.txt"));
  EXPECT_EQ(test::read_file(dir / "other"), "of value");
  EXPECT_EQ(test::read_file(dir / "a.txt.partial"), "another's");
  EXPECT_EQ(test::read_file(fmt::format("{}{}.partial", begin, count + 3)), "left behind");
  EXPECT_FALSE(std::filesystem::exists(dir / "new"));
}

TEST(RemoveUnfinished, TakesWhatKilledProcessesLeftOfThatFileAlone) {
  const test::TempDir dir;
  const std::vector<std::string> others = {"a.txt",
                                           "a.txt.12-.partial",
                                           "a.txt.12-3.partial.x",
                                           "a.txt.partial",
                                           "a.txt.-3.partial",
                                           "a.txt.x12-3.partial",
                                           "a.txt2-3.partial",
                                           "b.a.txt.12-3.partial",
                                           "a.txt.12-3.par"};
  for (const auto& name : others) test::write_file(dir / name, "kept");
  test::write_file(dir / "a.txt.12-3.partial", "left behind");
  ::close(make_beside(dir / "a.txt").descriptor);
  remove_unfinished(dir / "a.txt");
  EXPECT_THAT(test::names_in(dir.path()), testing::UnorderedElementsAreArray(others));
  EXPECT_EQ(test::message_of<Error>([&] { remove_unfinished(dir / "none/a.txt"); }),
            (dir / "none").string() + ": cannot be read: No such file or directory");
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
  EXPECT_THAT(test::names_in(dir.path()), testing::ElementsAre("a.txt"));
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
