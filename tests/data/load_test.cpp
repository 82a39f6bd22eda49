#include <algorithm>
#include <map>
#include <set>

#include "strait/base/error.h"
#include "strait/data/dataset.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using test::message_of;

TEST(Load, AnUnknownKindListsTheKnownOnes) {
  EXPECT_EQ(
      message_of<InputError>([] { DataOptions("cifar100"); }),
      "data.kind is \"cifar100\", expected one of cifar10, shapes, images, tensors, wikitext2, text (did you "
      "mean \"cifar10\"?)");
  EXPECT_EQ(message_of<InputError>([] { DataOptions("imagenet"); }),
            "data.kind is \"imagenet\", expected one of cifar10, shapes, images, tensors, wikitext2, text");
}

TEST(Load, AnEpochVisitsEverySampleOnce) {
  for (const int64_t size : {0, 1, 2, 3, 10, 1000}) {
    auto order = epoch_order(1, 2, size);
    std::ranges::sort(order);
    ASSERT_EQ(order.size(), static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  }
}

TEST(Load, TheOrderDependsOnSeedAndEpoch) {
  const auto order = epoch_order(5, 3, 100);
  EXPECT_EQ(order, epoch_order(5, 3, 100));
  EXPECT_NE(order, epoch_order(5, 4, 100));
  EXPECT_NE(order, epoch_order(6, 3, 100));
  EXPECT_NE(epoch_order(0, 1, 100), epoch_order(1, 0, 100));
}

/// All 24 orders of four samples turn up about equally often over the seeds.
TEST(Load, EveryPermutationIsAboutAsLikely) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t seed = 0; seed < 2400; ++seed) ++counts[epoch_order(seed, 0, 4)];
  ASSERT_EQ(counts.size(), 24U);
  for (const auto& [order, count] : counts) {  // 100 expected, standard deviation 10
    EXPECT_GT(count, 50);
    EXPECT_LT(count, 150);
  }
}

TEST(Load, AugmentationKeysDiffer) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int64_t epoch = 0; epoch < 20; ++epoch) keys.insert(augmentation_key(seed, epoch));
  }
  EXPECT_EQ(keys.size(), 400U);
  EXPECT_EQ(augmentation_key(3, 4), augmentation_key(3, 4));
}

}  // namespace
}  // namespace strait
