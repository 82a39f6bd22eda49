#include "strait/train/rank_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ATen/ops/randn.h>

#include "tests/support/errors.h"

namespace strait {
namespace {

/// A boundary of which one end is here.
std::vector<BoundaryEndpoints> end_of_boundary(BoundaryEndpoints::Local local) {
  CompressionOptions options;
  options.activations = {"topk:0.5", "ef21"};
  std::vector<BoundaryEndpoints> ends;
  ends.emplace_back("cut", uint16_t{0}, links_of(options, "cut"), 0, local);
  return ends;
}

TEST(RankStatistics, TheTwoEndsOfALinkMustHoldTheSame) {
  auto before = end_of_boundary({.upstream = true, .downstream = false});
  auto behind = end_of_boundary({.upstream = false, .downstream = true});
  const at::Tensor x = at::randn({2, 4});
  behind[0].activations.receiver->decode(before[0].activations.sender->encode(x, {}, {}), meta_of(x), {}, {});

  std::map<std::string, uint64_t> all = feedback_state_of(before, 0);
  ASSERT_EQ(all.size(), 1U);
  all.merge(feedback_state_of(behind, 0));
  ASSERT_EQ(all.size(), 2U) << "the receiver's has a name of its own";
  EXPECT_NO_THROW(check_ends_agree(all));

  for (const auto& [name, sum] : all) {
    auto changed = all;
    changed[name] ^= 1;
    EXPECT_THAT(
        test::message_of<Error>([&] { check_ends_agree(changed); }),
        testing::MatchesRegex("boundary state replica 0.cut.activations.[a-z]+.estimate: the two endpoints no "
                              "longer hold the same state"));
  }
}

}  // namespace
}  // namespace strait
