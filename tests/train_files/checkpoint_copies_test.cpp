// Parts of checkpoints on their way between ranks, which are threads here.

#include "strait/checkpoint/checkpoint_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/checkpoint/checkpoint.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointFolder::Entry;
using Names = std::vector<std::string>;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::array kFiles = {kWeightsFile, kOptimizerFile, kLinksFile, kRandomFile, kRecordFile};

/// The five files of a part, of sizes around that of a piece on the way, and one of nothing.
void write_part(const fs::path& folder, int rank) {
  constexpr size_t kPiece = size_t{4} << 20;
  const std::array<size_t, 5> sizes = {2 * kPiece + 17, kPiece, 0, kPiece - 1, 300 + static_cast<size_t>(rank)};
  fs::create_directories(folder);
  for (size_t i = 0; i < kFiles.size(); ++i) {
    std::string content(sizes[i], '\0');
    for (size_t j = 0; j < content.size(); ++j) content[j] = static_cast<char>(j * 31 + j / 251 + i + rank * 7);
    test::write_file(folder / kFiles[i], content);
  }
}

void expect_equal_parts(const fs::path& a, const fs::path& b) {
  for (const char* name : kFiles)
    EXPECT_TRUE(test::read_file(a / name) == test::read_file(b / name)) << b / name;
}

TEST(MoveParts, ArriveBitForBit) {
  const test::TempDir dir;
  const test::Ranks ranks(3);
  for (int rank = 0; rank < 3; ++rank) write_part(dir / ("from" + std::to_string(rank)), rank);
  // A ring, a second one from rank 0, and the way back.
  const std::vector<std::pair<int, int>> ways = {{0, 1}, {1, 2}, {2, 0}, {0, 2}, {1, 0}};
  const auto target = [&](int from, int to) {
    return dir / ("to" + std::to_string(to) + "-of" + std::to_string(from));
  };
  for (const auto& [from, to] : ways) fs::create_directories(target(from, to));
  const auto errors = ranks.run([&](Group& group) {
    std::vector<PartMove> moves;
    for (const auto& [from, to] : ways) {
      auto& move = moves.emplace_back(PartMove{from, to, {}, {}});
      if (from == group.rank()) move.source = dir / ("from" + std::to_string(from));
      if (to == group.rank()) move.target = target(from, to);
    }
    move_parts(group, moves);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  for (const auto& [from, to] : ways)
    expect_equal_parts(dir / ("from" + std::to_string(from)), target(from, to));
}

TEST(MoveParts, AFileThatIsMissingEndsAllOfThem) {
  const test::TempDir dir;
  write_part(dir / "part", 0);
  fs::remove(dir / "part" / kLinksFile);
  fs::create_directories(dir / "target");
  const auto errors = test::Ranks(3).run([&](Group& group) {
    move_parts(group, {PartMove{0, 1, dir / "part", dir / "target"}});
  });
  EXPECT_THAT(errors.at(0), HasSubstr("links.safetensors: cannot be opened"));
  for (const int rank : {1, 2}) EXPECT_THAT(errors.at(static_cast<size_t>(rank)), HasSubstr("rank 0 gave up"));
}

/// Three ranks with folders of their own, as on three machines.
class CheckpointWriterTest : public testing::Test {
 protected:
  fs::path checkpoints(int rank) const { return dir_ / ("machine" + std::to_string(rank)); }

  std::vector<std::string> write(const std::vector<Entry>& entries, const CheckpointOptions& options) {
    return ranks_.run([&](Group& group) {
      CheckpointWriter writer(checkpoints(group.rank()), group.rank(), options,
                              copy_holders({"a", "b", "c"}, 1));
      for (const Entry& entry : entries) {
        writer.write(group, entry,
                     [&](const fs::path& folder) { write_part(folder, group.rank() + entry.epoch); });
      }
    });
  }

  const test::TempDir dir_;
  const test::Ranks ranks_{3};
};

TEST_F(CheckpointWriterTest, LeavesEachPartTwice) {
  EXPECT_THAT(write({{1, 0}}, {}), Each(IsEmpty()));
  for (int rank = 0; rank < 3; ++rank) {
    const int holder = (rank + 1) % 3;
    const fs::path part = CheckpointFolder::part_of(checkpoints(rank), rank);
    const fs::path copy =
        CheckpointFolder::copy_of(CheckpointFolder::part_of(checkpoints(holder), holder), rank);
    EXPECT_EQ(test::names_in(copy), Names{"epoch-0001-batch-00000"});
    expect_equal_parts(part / "epoch-0001-batch-00000", copy / "epoch-0001-batch-00000");
  }
}

TEST_F(CheckpointWriterTest, CopiesStayAsLongAsTheParts) {
  EXPECT_THAT(write({{1, 0}, {2, 0}, {2, 5}, {3, 0}}, {.keep = 1, .keep_epochs = {2}}), Each(IsEmpty()));
  const Names kept = {"epoch-0002-batch-00000", "epoch-0003-batch-00000"};
  EXPECT_EQ(test::names_in(checkpoints(0) / "copies/rank-2"), kept);
  EXPECT_EQ(test::names_in(checkpoints(1) / "rank-1/copies/rank-0"), kept);
  EXPECT_EQ(test::names_in(checkpoints(2) / "rank-2"), (Names{"copies", kept[0], kept[1]}));
}

// Whoever starts the program takes wrong input for what would be wrong the next time too.
TEST(CheckpointWriter, AFolderThatIsLostMeanwhileIsAFailureAndNoWrongInput) {
  const test::TempDir dir;
  const fs::path path = dir / "checkpoint";
  SingleProcessGroup group;
  CheckpointWriter writer(path, 0, {});
  const auto write = [&](int epoch) {
    writer.write(group, {epoch, 0}, [&](const fs::path& folder) { write_part(folder, epoch); });
  };
  write(1);
  fs::rename(path, dir / "elsewhere");
  fs::create_symlink("checkpoint", path);  // to itself
  try {
    write(2);
    FAIL();
  } catch (const InputError& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be read: Too many levels of symbolic links"));
  }
}

// A copy that cannot be written is no copy: no part gets its name then, and the checkpoint before stays.
TEST_F(CheckpointWriterTest, ACopyThatFailsLeavesTheCheckpointBefore) {
  EXPECT_THAT(write({{1, 0}}, {}), Each(IsEmpty()));
  fs::remove_all(checkpoints(1) / "rank-1/copies");
  test::write_file(checkpoints(1) / "rank-1/copies", "in the way");
  const auto errors = write({{2, 0}}, {});
  EXPECT_THAT(errors.at(1), HasSubstr("rank-1/copies/rank-0"));
  // "rank 1 gave up", or, where it was gone before that was read, "the first to fail was rank 1".
  for (const int rank : {0, 2}) {
    EXPECT_THAT(errors.at(static_cast<size_t>(rank)),
                AllOf(HasSubstr("rank 1"), HasSubstr("rank-1/copies/rank-0")));
  }
  EXPECT_EQ(CheckpointFolder(checkpoints(0), {}).entries(), std::vector<Entry>({{1, 0}}));
  EXPECT_EQ(CheckpointFolder(checkpoints(2) / "rank-2", {}).entries(), std::vector<Entry>({{1, 0}}));
}

// On a disk that they share, what the others have written is a part of what fills it.
TEST_F(CheckpointWriterTest, WhereOneCannotWriteTheOthersKeepNothing) {
  EXPECT_THAT(write({{1, 0}}, {}), Each(IsEmpty()));
  const auto errors = ranks_.run([&](Group& group) {
    CheckpointWriter writer(checkpoints(group.rank()), group.rank(), {}, copy_holders({"a", "b", "c"}, 1));
    EXPECT_THROW(writer.write(group, {2, 0},
                              [&](const fs::path& folder) {
                                if (group.rank() == 1) throw Error("no room");
                                write_part(folder, group.rank());
                              }),
                 Error);
    group.gather("");  // until all have seen to it
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  const Names kept = {"epoch-0001-batch-00000"};
  for (int rank = 0; rank < 3; ++rank) {
    const fs::path own = CheckpointFolder::part_of(checkpoints(rank), rank);
    EXPECT_EQ(CheckpointFolder(own, {}).entries(), std::vector<Entry>({{1, 0}})) << rank;
    EXPECT_THAT(CheckpointFolder(own, {}).partial_entries(), IsEmpty()) << rank;
    if (rank == 1) continue;  // it fails before copies come, of which an empty folder may be left
    const fs::path copies = CheckpointFolder::copy_of(own, (rank + 2) % 3);
    EXPECT_EQ(test::names_in(copies), kept) << rank;
  }
}

}  // namespace
}  // namespace strait
