#include "strait/data/image_folder.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/data/images.h"
#include "strait/data/kinds.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kGolden = fs::absolute("tests/golden/pictures");

/// Two classes with pictures of several kinds.
class ImageFolders : public testing::Test {
 protected:
  ImageFolders() {
    add("train/blue/b.png", "rgb.png");
    add("train/blue/a.JPG", "rgb.jpg");
    add("train/blue/deeper/c.jpeg", "progressive.jpg");
    add("train/amber/z.png", "grey.png");
    add("test/blue/a.png", "palette.png");
    options_.root = root_.path();
  }

  void add(const std::string& name, const std::string& picture) const {
    fs::create_directories((root_ / name).parent_path());
    fs::copy_file(kGolden / picture, root_ / name);
  }

  std::vector<std::string> train_names() const {
    std::vector<std::string> names;
    for (const auto& [path, label] : labelled_files(root_ / "train", class_names(root_ / "train"))) {
      names.push_back(std::to_string(label) + " " + path.lexically_relative(root_ / "train").string());
    }
    return names;
  }

  std::string complaint() const {
    return test::message_of<InputError>([&] {
      const auto data = load_data(options_);
      for (const auto& split : {data.train, data.test}) {
        std::vector<int64_t> ids(static_cast<size_t>(split->size()));
        std::iota(ids.begin(), ids.end(), 0);
        split->batch(ids, std::nullopt);
      }
    });
  }

  test::TempDir root_;
  DataOptions options_{"images", {{"size", 8}}};
};

TEST_F(ImageFolders, ClassesAreSortedAndFilesGoRoundThem) {
  EXPECT_THAT(class_names(root_ / "train"), ElementsAre("amber", "blue"));
  EXPECT_THAT(train_names(),
              ElementsAre("0 amber/z.png", "1 blue/a.JPG", "1 blue/b.png", "1 blue/deeper/c.jpeg"));
  const SampleForm form = data_kind("images").form(options_);
  EXPECT_THAT(form.shape, ElementsAre(3, 8, 8));
  EXPECT_EQ(form.outputs, 2);
}

TEST_F(ImageFolders, OtherAndHiddenFilesAndLinksThatLeadBackAreLeftOut) {
  const auto before = train_names();
  test::write_file(root_ / "train/blue/notes.txt", "");
  add("train/blue/.hidden.png", "rgb.png");
  add("train/.thumbnails/a.png", "rgb.png");
  add("train/blue/.git/a.png", "rgb.png");
  fs::create_directory_symlink(root_ / "train", root_ / "train/blue/deeper/back");
  EXPECT_EQ(train_names(), before);
  fs::create_symlink(kGolden / "rgb.png", root_ / "train/amber/zz.png");
  fs::create_directory_symlink(root_ / "train/blue/deeper", root_ / "train/green");
  EXPECT_THAT(train_names(), testing::Contains("0 amber/zz.png"));
  EXPECT_THAT(train_names(), testing::Contains("2 green/c.jpeg"));
}

TEST_F(ImageFolders, ABatchIsScaledCroppedAndNormalised) {
  const auto data = load_data(options_);
  const Batch batch = data.train->batch(std::vector<int64_t>{1, 0}, std::nullopt);
  EXPECT_THAT(batch.inputs.sizes(), ElementsAre(2, 3, 8, 8));
  EXPECT_EQ(batch.targets[0].item<int64_t>(), 1);
  EXPECT_EQ(batch.targets[1].item<int64_t>(), 0);
  EXPECT_THAT(batch.ids, ElementsAre(1, 0));
  const std::string expected = read_whole(kGolden / "rgb.jpg.fit-8.rgb");  // Pillow's
  const double mean[] = {0.485, 0.456, 0.406};
  const double deviation[] = {0.229, 0.224, 0.225};
  for (int64_t i = 0; i < 3 * 64; ++i) {
    const auto got = batch.inputs[0][i % 3].flatten()[i / 3].item<double>();
    const double byte = (got * deviation[i % 3] + mean[i % 3]) * 255;
    EXPECT_NEAR(byte, static_cast<uint8_t>(expected[static_cast<size_t>(i)]), 1.01) << i;
  }
}

TEST_F(ImageFolders, ASmallPictureIsEnlargedAsPillowDoes) {
  const at::Tensor got = fitted(read_picture(kGolden / "rgb.jpg"), 23, "a");
  const std::string expected = read_whole(kGolden / "rgb.jpg.fit-23.rgb");
  ASSERT_EQ(expected.size(), static_cast<size_t>(got.numel()));
  const at::Tensor bytes = got.permute({1, 2, 0}).contiguous();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(bytes.data_ptr<float>()[i], static_cast<uint8_t>(expected[i]), 2.01) << i;
  }
}

TEST_F(ImageFolders, TrainingShiftsAndMirrorsAndTheTestSetDoesNot) {
  const auto plain = load_data(options_).train;
  const std::vector<int64_t> ids = {1};
  const at::Tensor still = plain->batch(ids, std::nullopt).inputs[0];
  const double black = -0.485 / 0.229;
  int moved = 0;
  for (uint64_t key = 0; key < 20; ++key) {
    const at::Tensor got = plain->batch(ids, key).inputs[0];
    EXPECT_TRUE(at::equal(got, plain->batch(ids, key).inputs[0]));
    const Augmentation drawn = draw_augmentation(key, 1, 1);
    for (int64_t y = 0; y < 8; ++y) {
      for (int64_t x = 0; x < 8; ++x) {
        const int64_t row = y + drawn.top - 1;
        const int64_t column = (drawn.flip ? 7 - x : x) + drawn.left - 1;
        const bool inside = row >= 0 && row < 8 && column >= 0 && column < 8;
        const double expected = inside ? still[0][row][column].item<double>() : black;
        ASSERT_NEAR(got[0][y][x].item<double>(), expected, 1e-5) << key;
      }
    }
    moved += at::equal(got, still) ? 0 : 1;
  }
  EXPECT_GT(moved, 10);
  options_.settings.set("augment", false);
  EXPECT_TRUE(at::equal(load_data(options_).train->batch(ids, 3).inputs[0], still));
}

TEST_F(ImageFolders, LimitsTakeFromAllClasses) {
  options_.train_limit = 2;
  const auto data = load_data(options_);
  const at::Tensor targets = data.train->batch(std::vector<int64_t>{0, 1}, std::nullopt).targets;
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_NE(targets[0].item<int64_t>(), targets[1].item<int64_t>());
  options_.train_limit = 5;
  EXPECT_EQ(complaint(), "data.train_limit is 5, expected 0 (all) to 4");
}

TEST_F(ImageFolders, WhatIsWrongIsNamed) {
  test::write_file(root_ / "test/blue/broken.png", "\x89PNG\r\n\x1a\n....");
  EXPECT_THAT(complaint(), HasSubstr((root_ / "test/blue/broken.png").string() + ": is not a sound PNG file"));
  fs::remove(root_ / "test/blue/broken.png");
  add("test/bleu/a.png", "rgb.png");
  EXPECT_EQ(complaint(),
            (root_ / "test/bleu").string() +
                ": is no class of the training set, which has amber, blue (did you mean \"blue\"?)");
  fs::remove_all(root_ / "test");
  EXPECT_THAT(complaint(), HasSubstr((root_ / "test").string() + ": no such folder; data.root"));
  fs::create_symlink("test", root_ / "test");
  EXPECT_THAT(complaint(), HasSubstr((root_ / "test").string() + ": cannot be read: Too many levels"));
  fs::remove(root_ / "test");
  fs::create_directories(root_ / "test");
  EXPECT_THAT(complaint(), HasSubstr((root_ / "test").string() + ": has no folder of a class; data.root"));
  fs::create_directories(root_ / "test/blue");
  EXPECT_EQ(complaint(), (root_ / "test/blue").string() +
                             ": has no picture (.png, .jpg, .jpeg), expected one in the folder of a class");
  fs::create_directories(root_ / "train/azure");
  test::write_file(root_ / "train/azure/a.webp", "");
  EXPECT_THAT(complaint(),
              HasSubstr((root_ / "train/azure").string() + ": has no picture (.png, .jpg, .jpeg)"));
  fs::remove_all(root_ / "train");
  fs::create_directories(root_ / "train");
  EXPECT_THAT(complaint(), HasSubstr((root_ / "train").string() + ": has no folder of a class"));
  const Picture strip{1, 50000, std::vector<uint8_t>(150000)};
  EXPECT_EQ(test::message_of<InputError>([&] { fitted(strip, 64, "strip.png"); }),
            "strip.png: has 50000 by 1 pixels, too narrow to be scaled to 64 rows and columns");
}

}  // namespace
}  // namespace strait
