#include "strait/doctor/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/doctor/invented.h"

namespace strait {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The findings' texts, those that stop a run with a ! before them.
std::vector<std::string> texts_of(const Diagnosis& diagnosis) {
  std::vector<std::string> texts;
  for (const auto& finding : findings_of(diagnosis))
    texts.push_back((finding.stops_the_run ? "!" : "") + finding.text);
  return texts;
}

TEST(Findings, NothingIsSaidWhereAllIsWell) { EXPECT_THAT(findings_of(test::three_ranks()), IsEmpty()); }

TEST(Findings, NameRanksThatCannotReachEachOther) {
  auto found = test::three_ranks();
  found.pairs[2].route = Route::relayed;
  found.ranks[1].address = "10.0.0.2:41234";
  EXPECT_THAT(
      texts_of(found),
      ElementsAre("ranks 1 (10.0.0.2:41234) and 2 cannot reach each other; their messages, of boundary layer2, "
                  "go through rank 0: let the port of either through to the other's machine"));
}

TEST(Findings, NameALinkThatDrops) {
  auto found = test::three_ranks();
  found.pairs[0].outages = 1;
  found.pairs[2].outages = 3;
  EXPECT_THAT(texts_of(found), ElementsAre(HasSubstr("ranks 0 and 1 was lost once while"),
                                           HasSubstr("ranks 1 and 2 was lost 3 times while")));
}

TEST(Findings, NameTheSlowWayOfALink) {
  auto found = test::three_ranks();
  found.pairs[2].speed->down = 1.25e6;
  EXPECT_THAT(
      texts_of(found),
      ElementsAre("rank 2 sends to rank 1 (boundary layer2) at 10 Mbps, far slower than the others, of which "
                  "the middle one has 100 Mbps: a step waits for the slowest link; compress more there "
                  "(compression.boundaries), or cut the network where less crosses (model.cuts)"));
  found.pairs[2].speed->down = 5e6;
  EXPECT_THAT(texts_of(found), IsEmpty()) << "it is not much slower";
}

TEST(Findings, NameALinkWhoseConnectionsAreFull) {
  auto found = test::three_ranks();
  for (auto& pair : found.pairs) {
    if (pair.speed) pair.speed->latency_seconds = 0.04;
  }
  EXPECT_THAT(texts_of(found), IsEmpty()) << "1 MB of the 4 MiB is under way";
  found.pairs[0].speed->down = 36e6;
  EXPECT_THAT(
      texts_of(found),
      ElementsAre(
          "rank 1 sends to rank 0 (boundary layer1) at 288 Mbps with 80 ms there and back, so that 2.9 MB are "
          "under way: about as much as the systems let 1 connection have (the last number of "
          "net.ipv4.tcp_wmem there is 4194304, of tcp_rmem here 6291456); set pipeline.connections = 4, or "
          "raise these numbers"));
  found.pairs[0].connections = 4;
  EXPECT_THAT(texts_of(found), IsEmpty()) << "four may have 16 MiB";
  found.pairs[0].connections = 1;
  found.ranks[0].receive_buffer = 0;
  EXPECT_THAT(texts_of(found), IsEmpty()) << "it is not known";
}

TEST(Findings, ALinkWithinAMachineIsNoMeasureForOthers) {
  auto found = test::three_ranks();
  found.pairs[0].route = Route::local;
  found.pairs[0].speed = {.up = 2e9, .down = 2e9, .latency_seconds = 0};
  EXPECT_THAT(texts_of(found), IsEmpty());
}

TEST(Findings, NameVersionsThatDiffer) {
  auto found = test::three_ranks();
  found.ranks[1].code_version = found.ranks[2].code_version = "1.0+def";
  found.ranks[2].settings = {{"seed", "0"}};  // another version may have other keys
  EXPECT_THAT(
      texts_of(found),
      ElementsAre(
          "!ranks 1, 2 have strait 1.0+def (wire version 3), rank 0 strait 1.0+abc (wire version 3); strait "
          "train refuses ranks that differ: install one version everywhere"));
  found = test::three_ranks();
  found.ranks[2].wire_version = 1;
  EXPECT_THAT(texts_of(found),
              ElementsAre(HasSubstr("!rank 2 has strait 1.0+abc (wire version 1), rank 0 strait 1.0+abc")));
  found = test::three_ranks();
  found.ranks[1].library_version = "1.13.0";
  EXPECT_THAT(texts_of(found), ElementsAre(HasSubstr("rank 1 has LibTorch 1.13.0, rank 0 2.13.0")));
}

TEST(Findings, NameASettingThatDiffers) {
  auto found = test::three_ranks();
  found.ranks[2].settings[1].second = "4";
  EXPECT_THAT(
      texts_of(found),
      ElementsAre("!rank 2 has train.epochs = 4, rank 0 train.epochs = 3; strait train refuses ranks that "
                  "differ: give all the same configuration"));
}

TEST(Findings, NameClocksThatDisagree) {
  auto found = test::three_ranks();
  found.ranks[1].clock_ahead = 2;
  EXPECT_THAT(texts_of(found), IsEmpty());
  found.ranks[1].clock_ahead = 75.04;
  found.ranks[2].clock_ahead = -4;
  EXPECT_THAT(texts_of(found),
              ElementsAre(HasSubstr("clock of node1 (rank 1) is 75.0 s ahead of that of rank 0"),
                          HasSubstr("clock of node2 (rank 2) is 4.0 s behind that of rank 0")));
}

TEST(Findings, NameWhatIsTooLittleForTheRanksOfAMachine) {
  auto found = test::three_ranks();
  found.ranks[1].host = found.ranks[2].host = "both";
  for (auto& facts : found.ranks) {
    facts.weight_bytes = uint64_t{3} << 30;  // two have room for one such rank, but not for both
    facts.checkpoint_bytes = uint64_t{50} << 30;
  }
  EXPECT_THAT(
      texts_of(found),
      ElementsAre("!both (ranks 1, 2) has 85.9 GB of free disk, and checkpoints in runs/invented take at least "
                  "107.4 GB",
                  "!both (ranks 1, 2) has 8.6 GB of free memory, and weights and gradients take at least "
                  "12.9 GB"));
  found = test::three_ranks();
  found.ranks[0].free_disk = 40000000;
  EXPECT_THAT(texts_of(found), ElementsAre("node0 (rank 0) has only 40.0 MB of free disk"));
}

TEST(Findings, WhatStopsARunComesFirst) {
  auto found = test::three_ranks();
  found.pairs[0].route = Route::relayed;
  found.ranks[2].problem = "data.root: /data/cifar-10-batches-bin: no such folder";
  EXPECT_THAT(texts_of(found), ElementsAre("!rank 2: data.root: /data/cifar-10-batches-bin: no such folder",
                                           HasSubstr("ranks 0 and 1 cannot reach each other")));
}

}  // namespace
}  // namespace strait
