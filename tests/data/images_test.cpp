#include "strait/data/images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "strait/base/error.h"
#include "strait/base/random.h"

namespace strait {
namespace {

constexpr Normalisation kNormalisation{{0.4914F, 0.4822F, 0.4465F}, {0.2023F, 0.1994F, 0.2010F}};

ImageRecords random_images(int64_t count) {
  ImageRecords images;
  CounterRandom random(7);
  for (int64_t i = 0; i < count; ++i) {
    images.labels.push_back(static_cast<uint8_t>(i % 10));
    for (int64_t j = 0; j < kImageBytes; ++j) images.pixels.push_back(static_cast<uint8_t>(random.next()));
  }
  return images;
}

/// The value of one pixel of the augmented picture, said as torchvision does it: pad the picture with
/// black, cut the window, mirror it, scale to [0, 1], normalise.
float reference_pixel(const ImageRecords& images, int64_t id, const Augmentation& how, int64_t channel,
                      int64_t y, int64_t x) {
  const int64_t source_x = how.left + (how.flip ? 31 - x : x) - 4;
  const int64_t source_y = how.top + y - 4;
  uint8_t value = 0;
  if (source_x >= 0 && source_x < 32 && source_y >= 0 && source_y < 32) {
    value = images.pixels[static_cast<size_t>(id * 3072 + channel * 1024 + source_y * 32 + source_x)];
  }
  const float mean = kNormalisation.mean[static_cast<size_t>(channel)];
  const float deviation = kNormalisation.deviation[static_cast<size_t>(channel)];
  return (static_cast<float>(value) / 255.0F - mean) / deviation;
}

/// The number of pixels of the batch that differ from the reference.
int64_t mismatches(const Batch& batch, const ImageRecords& images, std::optional<uint64_t> key) {
  const auto* got = batch.inputs.data_ptr<float>();
  int64_t wrong = 0;
  for (const int64_t id : batch.ids) {
    const Augmentation how = key ? draw_augmentation(*key, id) : Augmentation{};
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t y = 0; y < 32; ++y) {
        for (int64_t x = 0; x < 32; ++x) wrong += *got++ != reference_pixel(images, id, how, channel, y, x);
      }
    }
  }
  return wrong;
}

TEST(Images, BatchHasShapesTypesTargetsAndIds) {
  const ImageDataset data(random_images(12), kNormalisation);
  const std::vector<int64_t> ids = {11, 0, 3, 3};
  const Batch batch = data.batch(ids, std::nullopt);
  EXPECT_EQ(batch.inputs.sizes().vec(), (std::vector<int64_t>{4, 3, 32, 32}));
  EXPECT_EQ(batch.inputs.scalar_type(), at::kFloat);
  EXPECT_EQ(batch.targets.sizes().vec(), (std::vector<int64_t>{4}));
  EXPECT_EQ(batch.targets.scalar_type(), at::kLong);
  const auto* targets = batch.targets.data_ptr<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(targets, targets + 4), (std::vector<int64_t>{1, 0, 3, 3}));
  EXPECT_EQ(batch.ids, ids);
  EXPECT_EQ(data.batch({}, 1).inputs.size(0), 0);
}

TEST(Images, MatchesThePlainReference) {
  const ImageRecords images = random_images(40);
  const ImageDataset data(images, kNormalisation);
  std::vector<int64_t> ids(40);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(39 - i);
  EXPECT_EQ(mismatches(data.batch(ids, std::nullopt), images, std::nullopt), 0);
  for (const uint64_t key : {0ULL, 1ULL, 0xdeadbeefULL}) {
    EXPECT_EQ(mismatches(data.batch(ids, key), images, key), 0) << key;
  }
}

TEST(Images, BorderIsBlackAfterNormalisation) {
  ImageRecords white;
  white.labels.assign(1, 0);
  white.pixels.assign(kImageBytes, 255);
  const ImageDataset data(white, kNormalisation);
  const std::vector<int64_t> ids = {0};
  uint64_t key = 0;
  while (draw_augmentation(key, 0).top == 4) ++key;
  const Batch batch = data.batch(ids, key);
  const auto* got = batch.inputs.data_ptr<float>();
  EXPECT_EQ(*std::min_element(got, got + 1024), (0.0F - 0.4914F) / 0.2023F);
}

TEST(Images, AnAugmentationDependsOnKeyAndIdOnly) {
  const ImageDataset data(random_images(8), kNormalisation);
  const std::vector<int64_t> forward = {5, 6};
  const std::vector<int64_t> backward = {6, 5};
  const Batch a = data.batch(forward, 9);
  const Batch b = data.batch(backward, 9);
  const auto* first = a.inputs.data_ptr<float>();
  const auto* second = b.inputs.data_ptr<float>();
  EXPECT_TRUE(std::equal(first, first + 3072, second + 3072));
  EXPECT_TRUE(std::equal(first + 3072, first + 2 * 3072, second));
}

TEST(Images, AreTrainedOnAsTheyAreWithoutAugmentation) {
  const ImageRecords images = random_images(8);
  const ImageDataset plain(images, kNormalisation, /*augment=*/false);
  const ImageDataset augmented(images, kNormalisation);
  const std::vector<int64_t> ids = {5, 6};
  EXPECT_TRUE(plain.batch(ids, 9).inputs.equal(plain.batch(ids, std::nullopt).inputs));
  EXPECT_FALSE(plain.batch(ids, 9).inputs.equal(augmented.batch(ids, 9).inputs));
}

TEST(Images, DrawsCoverEveryWindowAndBothFlips) {
  std::map<std::pair<int64_t, int64_t>, int> windows;
  int flips = 0;
  constexpr int kDraws = 8100;
  for (int id = 0; id < kDraws; ++id) {
    const Augmentation drawn = draw_augmentation(3, id);
    ASSERT_GE(std::min(drawn.top, drawn.left), 0);
    ASSERT_LE(std::max(drawn.top, drawn.left), 8);
    ++windows[{drawn.top, drawn.left}];
    flips += drawn.flip ? 1 : 0;
  }
  ASSERT_EQ(windows.size(), 81U);
  for (const auto& [window, count] : windows) {  // 100 expected, standard deviation 10
    EXPECT_GT(count, 50) << window.first << "," << window.second;
    EXPECT_LT(count, 150) << window.first << "," << window.second;
  }
  EXPECT_NEAR(flips, kDraws / 2, 250);
  EXPECT_NE(draw_augmentation(3, 0), draw_augmentation(4, 0));
}

TEST(Images, AnIdOutsideIsABrokenInvariant) {
  const ImageDataset data(random_images(3), kNormalisation);
  for (const int64_t id : {-1, 3}) {
    const std::vector<int64_t> ids = {id};
    EXPECT_THROW(data.batch(ids, std::nullopt), InternalError) << id;
  }
}

}  // namespace
}  // namespace strait
