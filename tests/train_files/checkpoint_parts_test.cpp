// Which checkpoint processes resume from, given what each of them sees.

#include "strait/checkpoint/checkpoint_parts.h"

#include <gtest/gtest.h>

#include "strait/checkpoint/checkpoint_copies.h"
#include "strait/checkpoint/training_state.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointFolder::Entry;
using Parts = std::vector<CheckpointPart>;

constexpr Entry kOld{1, 0};
constexpr Entry kNew{2, 0};
constexpr RankTopology kReader{.rank = 0, .ranks = 3, .replicas = 1};

CheckpointPart part(const Entry& entry, int rank, int ranks = 3) {
  return {entry, {.rank = rank, .ranks = ranks, .replicas = 1}, true, {}};
}
CheckpointPart unnamed(const Entry& entry, int rank) {
  return {entry, {.rank = rank, .ranks = 3, .replicas = 1}, false, {}};
}

TEST(ResumePoint, IsTheNewestThatIsWhole) {
  const ResumePoint point = find_resume_point(
      {{part(kOld, 0), part(kNew, 0)}, {part(kOld, 1), part(kNew, 1)}, {part(kOld, 2), part(kNew, 2)}},
      kReader);
  EXPECT_EQ(point.entry, kNew);
  EXPECT_TRUE(point.losses.empty());
  EXPECT_TRUE(point.names_all);
}

TEST(ResumePoint, ItDoesNotMatterWhereThePartsAre) {
  const ResumePoint point = find_resume_point({{}, {part(kNew, 2), part(kNew, 0)}, {part(kNew, 1)}}, kReader);
  EXPECT_EQ(point.entry, kNew);
  EXPECT_TRUE(point.losses.empty());
}

// All parts are written before the first gets its name.
TEST(ResumePoint, WhereOnePartHasItsNameTheOthersCountWithout) {
  ResumePoint point = find_resume_point(
      {{part(kOld, 0), part(kNew, 0)}, {part(kOld, 1), unnamed(kNew, 1)}, {part(kOld, 2), unnamed(kNew, 2)}},
      kReader);
  EXPECT_EQ(point.entry, kNew);
  EXPECT_FALSE(point.names_all);
  EXPECT_TRUE(point.losses.empty());
  // Not even one: some may still have been writing.
  point = find_resume_point(
      {{part(kOld, 0), unnamed(kNew, 0)}, {part(kOld, 1), unnamed(kNew, 1)}, {part(kOld, 2), unnamed(kNew, 2)}},
      kReader);
  EXPECT_EQ(point.entry, kOld);
  EXPECT_TRUE(point.losses.empty());
}

TEST(ResumePoint, APartThatIsNowhereIsLost) {
  ResumePoint point = find_resume_point({{part(kNew, 0)}, {}, {part(kOld, 2)}}, kReader);
  EXPECT_FALSE(point.entry.has_value());
  ASSERT_EQ(point.losses.size(), 2U);
  EXPECT_EQ(point.losses[0].entry, kNew);
  EXPECT_EQ(point.losses[0].ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(point.losses[1].ranks, (std::vector<int>{0, 1}));
  // Also where an older one is whole: what was trained since must not go without a word.
  point = find_resume_point({{part(kOld, 0), part(kNew, 0)}, {part(kOld, 1), part(kNew, 1)}, {part(kOld, 2)}},
                            kReader);
  EXPECT_EQ(point.entry, kOld);
  ASSERT_EQ(point.losses.size(), 1U);
  EXPECT_EQ(point.losses[0].ranks, std::vector<int>{2});
}

TEST(ResumePoint, PartsOfAnOlderOneMayBeGone) {
  const ResumePoint point =
      find_resume_point({{part(kNew, 0)}, {part(kNew, 1), part(kOld, 1)}, {part(kNew, 2)}}, kReader);
  EXPECT_EQ(point.entry, kNew);
  EXPECT_TRUE(point.losses.empty());
}

TEST(ResumePoint, NobodyHasAny) {
  const ResumePoint point = find_resume_point({{unnamed(kNew, 0)}, {}, {}}, kReader);
  EXPECT_FALSE(point.entry.has_value());
  EXPECT_TRUE(point.losses.empty());
}

TEST(ResumePoint, OtherNumbersOfProcessesCount) {
  // Written by two, read by three: all need both parts. What three wrote before is older and not whole any
  // more.
  const ResumePoint point =
      find_resume_point({{part(kNew, 0, 2), part(kNew, 1, 2), part(kOld, 0)}, {}, {}}, kReader);
  EXPECT_EQ(point.entry, kNew);
  EXPECT_EQ(point.writers.ranks, 2);
  EXPECT_EQ(needed_parts(point.writers, kReader).size(), 2U);
  EXPECT_EQ(
      needed_parts({.rank = 0, .ranks = 3, .replicas = 1}, {.rank = 2, .ranks = 3, .replicas = 1}).at(0).rank,
      2);
  // Three times as many in other replicas is another number too.
  EXPECT_EQ(needed_parts({.rank = 0, .ranks = 3, .replicas = 3}, kReader).size(), 3U);
}

CheckpointRecord record_of(const RankTopology& place) {
  CheckpointRecord record;
  record.place = place;
  return record;
}

TEST(PartsIn, AFolderOfCheckpoints) {
  const test::TempDir dir;
  const auto add = [&](const std::string& folder, const RankTopology& place) {
    fs::create_directories(dir / folder);
    write_record(dir / folder, record_of(place));
  };
  add("epoch-0002-batch-00000", {.rank = 0, .ranks = 3, .replicas = 1});
  add("rank-1/epoch-0002-batch-00000", {.rank = 1, .ranks = 3, .replicas = 1});
  add("rank-1/copies/rank-0/epoch-0002-batch-00000", {.rank = 0, .ranks = 3, .replicas = 1});
  // What is in it counts, not what the folder is called.
  add("copies/rank-1/epoch-0002-batch-00000", {.rank = 2, .ranks = 3, .replicas = 1});
  fs::create_directories(dir / "rank-2/epoch-0003-batch-00000.partial");  // just begun
  add("rank-2/epoch-0004-batch-00000.partial", {.rank = 2, .ranks = 3, .replicas = 1});
  fs::create_directories(dir / "rank-x/epoch-0003-batch-00000");
  const Parts parts = parts_in(dir.path());
  ASSERT_EQ(parts.size(), 5U);
  const ResumePoint point = find_resume_point({parts}, kReader);
  EXPECT_EQ(point.entry, kNew);
  EXPECT_TRUE(point.losses.empty());
  EXPECT_FALSE(parts[2].is_named);
  name_parts(dir.path(), {4, 0});
  EXPECT_TRUE(parts_in(dir.path())[2].is_named);
  EXPECT_EQ(folders_of(parts, kNew, {{.rank = 0, .ranks = 3, .replicas = 1}})->at(0),
            dir / "epoch-0002-batch-00000");
  EXPECT_EQ(folders_of(parts, kNew, {{.rank = 2, .ranks = 3, .replicas = 1}})->at(0),
            dir / "copies/rank-1/epoch-0002-batch-00000");
  EXPECT_FALSE(folders_of(parts, kNew, {{.rank = 2, .ranks = 4, .replicas = 1}}).has_value());
  add("rank-1/epoch-0002-batch-00000", {.rank = 7, .ranks = 3, .replicas = 1});
  EXPECT_THROW(parts_in(dir.path()), InputError);
}

using Holders = std::vector<std::vector<int>>;

TEST(CopyHolders, AreOnOtherMachines) {
  EXPECT_EQ(copy_holders({"a", "b", "c"}, 1), (Holders{{1}, {2}, {0}}));
  EXPECT_EQ(copy_holders({"a", "a", "b", "b"}, 1), (Holders{{2}, {3}, {0}, {1}}));
  EXPECT_EQ(copy_holders({"a", "b", "a", "b"}, 1), (Holders{{1}, {2}, {3}, {0}}));
  EXPECT_EQ(copy_holders({"a", "a", "a", "b"}, 1), (Holders{{3}, {3}, {3}, {0}}));
  EXPECT_EQ(copy_holders({"a", "a", "b", "c"}, 2), (Holders{{2, 3}, {2, 3}, {0, 3}, {1, 2}}));
}

TEST(CopyHolders, AsManyAsAreWanted) {
  EXPECT_EQ(copy_holders({"a", "a"}, kCopiesByMachines), (Holders{{}, {}}));
  EXPECT_EQ(copy_holders({"a", "b"}, kCopiesByMachines), (Holders{{1}, {0}}));
  EXPECT_EQ(copy_holders({"a", "a", "a"}, 1), (Holders{{1}, {2}, {0}})) << "better than none";
  EXPECT_EQ(copy_holders({"a", "a"}, 5), (Holders{{1}, {0}})) << "no more than there are others";
  EXPECT_EQ(copy_holders({"a"}, 1), Holders{{}});
  EXPECT_EQ(copy_holders({"a", "b"}, 0), (Holders{{}, {}}));
}

}  // namespace
}  // namespace strait
