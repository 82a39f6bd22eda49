#include "strait/data/batch_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "strait/data/dataset.h"

namespace strait {
namespace {

using testing::ElementsAre;

TEST(BatchParts, CoverTheBatchWithNearlyEqualSizes) {
  for (int parts = 1; parts <= 7; ++parts) {
    for (int64_t rows = 0; rows <= 20; ++rows) {
      int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const BatchPart found = part_of_batch(rows, part, parts);
        EXPECT_EQ(found.first_row, next);
        EXPECT_TRUE(found.rows == rows / parts || found.rows == rows / parts + 1) << rows << " " << part;
        EXPECT_LE(part_of_batch(rows, part, parts).rows, part_of_batch(rows + 1, part, parts).rows);
        next += found.rows;
      }
      EXPECT_EQ(next, rows);
    }
  }
}

TEST(BatchParts, OfAnOrderAreThoseOfItsBatches) {
  std::vector<int64_t> order(12);
  std::iota(order.begin(), order.end(), 100);
  EXPECT_THAT(part_of_order(order, 5, 0, 2), ElementsAre(100, 101, 102, 105, 106, 107, 110));
  EXPECT_THAT(part_of_order(order, 5, 1, 2), ElementsAre(103, 104, 108, 109, 111));
  EXPECT_EQ(part_of_order(order, 5, 0, 1), order);
}

TEST(BatchParts, AnOrderCanKeepTheSamplesOfEachPart) {
  for (const auto& [samples, batch_size, parts] :
       std::vector<std::tuple<int64_t, int64_t, int>>{{20, 8, 4}, {103, 10, 3}, {41, 10, 4}, {6, 6, 1}}) {
    const auto first = epoch_order(1, 0, samples);
    EXPECT_EQ(order_with_parts_of(first, first, batch_size, parts), first);
    for (int64_t epoch = 1; epoch < 4; ++epoch) {
      const auto order = order_with_parts_of(first, epoch_order(1, epoch, samples), batch_size, parts);
      EXPECT_THAT(order, testing::UnorderedElementsAreArray(first));
      EXPECT_NE(order, first);
      for (int part = 0; part < parts; ++part) {
        const auto own = part_of_order(order, batch_size, part, parts);
        EXPECT_THAT(own, testing::UnorderedElementsAreArray(part_of_order(first, batch_size, part, parts)));
        // As shuffled as the pass: another order of the part in each epoch.
        if (own.size() > 4) {
          EXPECT_NE(own, part_of_order(first, batch_size, part, parts)) << part << epoch;
        }
      }
    }
  }
}

TEST(BatchParts, ALastBatchThatIsTooShortIsLeftOut) {
  const std::vector<int64_t> order = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(part_of_order(order, 6, 0, 3), ElementsAre(0, 1));
  EXPECT_THAT(part_of_order(order, 6, 2, 3), ElementsAre(4, 5));
  EXPECT_TRUE(part_of_order(order, 9, 0, 9).empty());
}

}  // namespace
}  // namespace strait
