#include "strait/transport/group_part.h"

#include <gtest/gtest.h>

namespace strait {
namespace {

TEST(RankTopology, CountsReplicaByReplica) {
  const RankTopology place{.rank = 4, .ranks = 6, .replicas = 3};
  EXPECT_EQ(place.pipeline_ranks(), 2);
  EXPECT_EQ(place.replica(), 2);
  EXPECT_EQ(place.rank_in(0), 0);
  EXPECT_EQ(RankTopology({.rank = 5, .ranks = 6, .replicas = 3}).rank_in(1), 3);
  EXPECT_TRUE(place.is_alike({.rank = 1, .ranks = 6, .replicas = 3}));
  EXPECT_FALSE(place.is_alike({.rank = 4, .ranks = 6, .replicas = 2}));
}

TEST(GroupPart, OnePipelineIsTheGroupAndOneProcessIsAlone) {
  const auto alone = std::make_shared<SingleProcessGroup>();
  EXPECT_EQ(pipeline_of(alone, {}), alone);
  EXPECT_EQ(pipeline_of(nullptr, {.rank = 1, .ranks = 2, .replicas = 2})->size(), 1);
}

}  // namespace
}  // namespace strait
