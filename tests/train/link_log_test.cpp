#include "strait/train/link_log.h"

#include <gtest/gtest.h>

namespace strait {
namespace {

using namespace std::chrono_literals;

/// Rank 1 of three, whose links are what the test says.
class Middle : public SingleProcessGroup {
 public:
  int rank() const override { return 1; }
  int size() const override { return 3; }
  std::vector<LinkStatus> links() const override { return status; }

  std::vector<LinkStatus> status;
};

TEST(LinkLog, SaysEachOutageOnceAtOneOfTheTwoEnds) {
  const auto begin = std::chrono::system_clock::time_point(1000s);
  Middle group;
  group.status = {
      {.peer = 0, .route = Route::direct, .outages = {{begin, begin + 1500ms}, {begin + 5s, begin + 6s}}},
      {.peer = 2, .route = Route::relayed, .outages = {{begin, begin + 9s}}}};
  LinkLog log(group, nullptr);
  const auto first = log.take();
  ASSERT_EQ(first.size(), 1U) << "the other end tells of the link to rank 2";
  EXPECT_EQ(first[0].rank, 1);
  EXPECT_EQ(first[0].peer, 0);
  EXPECT_FALSE(first[0].relayed);
  EXPECT_EQ(first[0].outages, 2);
  EXPECT_DOUBLE_EQ(first[0].seconds, 2.5);
  EXPECT_TRUE(log.take().empty());

  group.status[0].outages.push_back({begin + 20s, begin + 24s});
  const auto second = log.take();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].outages, 1);
  EXPECT_DOUBLE_EQ(second[0].seconds, 4);
}

TEST(LinkLog, SaysWhichLinksAreRelayedEveryTime) {
  Middle group;
  group.status = {{.peer = 0, .route = Route::relayed}};
  LinkLog log(group, nullptr);
  for (int i = 0; i < 2; ++i) {
    const auto all = log.take();
    ASSERT_EQ(all.size(), 1U);
    EXPECT_TRUE(all[0].relayed);
    EXPECT_EQ(all[0].outages, 0);
  }
}

}  // namespace
}  // namespace strait
