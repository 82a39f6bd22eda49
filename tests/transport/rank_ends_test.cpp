#include "strait/transport/rank_ends.h"

#include <gtest/gtest.h>

namespace strait {
namespace {

TEST(RankEnds, TheFirstFailureCounts) {
  RankEnds ends;
  ends.note(2, {.status = 0, .signal = 0});
  EXPECT_TRUE(ends.first_end());
  EXPECT_FALSE(ends.first_failure());
  ends.note(1, {.status = 3, .signal = 0});
  ends.note(0, {.status = 0, .signal = 9});
  ends.note_killed();
  EXPECT_EQ(ends.status(), 3);
  EXPECT_EQ(ends.failure(), "rank 1 failed with exit status 3");
  EXPECT_TRUE(ends.first_failure());
}

TEST(RankEnds, ASignalCountsAsAShellSaysIt) {
  RankEnds ends;
  ends.note(0, {.status = 0, .signal = 15});
  EXPECT_EQ(ends.status(), 143);
  EXPECT_EQ(ends.failure(), "rank 0 was killed by signal 15 (Terminated)");
}

TEST(RankEnds, OneThatHadToBeKilledIsNoFailureOfItsOwn) {
  RankEnds ends;
  ends.note_killed();
  EXPECT_EQ(ends.status(), 137);
  EXPECT_EQ(ends.failure(), "");
  EXPECT_FALSE(ends.first_failure());
}

}  // namespace
}  // namespace strait
