#include "strait/data/shapes.h"

#include <algorithm>
#include <set>

#include "strait/base/error.h"
#include "strait/download/digest.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using test::message_of;

std::string picture(const ImageRecords& images, size_t id) {
  const auto* begin = reinterpret_cast<const char*>(images.pixels.data()) + id * kImageBytes;
  return {begin, kImageBytes};
}

TEST(Shapes, LabelsAreBalancedAndInOrder) {
  const ImageRecords images = draw_shapes(ShapesSplit::train, 40);
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(images.labels[i], i % 10);
}

TEST(Shapes, ALargerSetBeginsWithASmallerOne) {
  const ImageRecords small = draw_shapes(ShapesSplit::test, 7);
  const ImageRecords large = draw_shapes(ShapesSplit::test, 23);
  EXPECT_TRUE(std::equal(small.pixels.begin(), small.pixels.end(), large.pixels.begin()));
}

TEST(Shapes, NoPictureComesTwice) {
  const ImageRecords train = draw_shapes(ShapesSplit::train, 500);
  const ImageRecords test = draw_shapes(ShapesSplit::test, 500);
  std::set<std::string> seen;
  for (size_t i = 0; i < 500; ++i) {
    EXPECT_TRUE(seen.insert(picture(train, i)).second);
    EXPECT_TRUE(seen.insert(picture(test, i)).second);
  }
}

/// The pictures are part of what published numbers mean: this sum changes only together with the seed.
TEST(Shapes, PicturesAreTheSameBytesEverywhere) {
  const ImageRecords images = draw_shapes(ShapesSplit::train, 200);
  Hasher hasher(DigestKind::sha256);
  hasher.update(std::as_bytes(std::span(images.pixels)));
  EXPECT_EQ(hasher.finish().hex, "58f5d6d81db3c95e7b932336445f9911aaeda417922a37eb0a08646ea15a06c1");
}

/// Each picture has light pixels (the shape) and dark ones (the ground), so that no draw is empty.
TEST(Shapes, EveryPictureShowsSomething) {
  const ImageRecords images = draw_shapes(ShapesSplit::train, 1000);
  for (size_t i = 0; i < 1000; ++i) {
    int light = 0;
    int dark = 0;
    for (size_t p = 0; p < kPlanePixels; ++p) {
      int sum = 0;
      for (size_t c = 0; c < 3; ++c) sum += images.pixels[i * kImageBytes + c * kPlanePixels + p];
      light += sum > 3 * 110 ? 1 : 0;
      dark += sum < 3 * 110 ? 1 : 0;
    }
    EXPECT_GT(light, 30) << i;
    EXPECT_GT(dark, 100) << i;
  }
}

TEST(Shapes, LimitsChooseTheSizes) {
  DataOptions options("shapes");
  options.train_limit = 30;
  options.test_limit = 20;
  const DataSplits few = load_data(options);
  EXPECT_EQ(few.train->size(), 30);
  EXPECT_EQ(few.test->size(), 20);
  options.train_limit = 0;
  options.test_limit = 0;
  const DataSplits standard = load_data(options);
  EXPECT_EQ(standard.train->size(), 4000);
  EXPECT_EQ(standard.test->size(), 1000);
}

TEST(Shapes, LimitsAreChecked) {
  DataOptions options("shapes");
  options.train_limit = 50001;
  EXPECT_EQ(message_of<InputError>([&] { load_shapes(options); }),
            "data.train_limit is 50001, expected 0 (all) to 50000");
  options.train_limit = 1;
  options.test_limit = -5;
  EXPECT_EQ(message_of<InputError>([&] { load_shapes(options); }),
            "data.test_limit is -5, expected 0 (all) to 10000");
}

}  // namespace
}  // namespace strait
