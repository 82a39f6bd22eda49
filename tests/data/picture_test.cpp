#include "strait/data/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::StartsWith;

const std::filesystem::path kPictures = "tests/golden/pictures";  // by tests/python/make_pictures.py

int largest_difference(const std::vector<uint8_t>& got, const std::string& expected) {
  EXPECT_EQ(got.size(), expected.size());
  int largest = got.size() == expected.size() ? 0 : 256;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    largest = std::max(largest, std::abs(got[i] - static_cast<uint8_t>(expected[i])));
  }
  return largest;
}

struct Kind {
  const char* file;
  int64_t width;
  int64_t height;
  int tolerance;  ///< builds of libjpeg may round in different ways
};

class PictureOfPillow : public testing::TestWithParam<Kind> {};

TEST_P(PictureOfPillow, HasItsPixels) {
  const auto& [file, width, height, tolerance] = GetParam();
  const Picture picture = read_picture(kPictures / file);
  EXPECT_EQ(picture.width, width);
  EXPECT_EQ(picture.height, height);
  EXPECT_LE(largest_difference(picture.rgb, read_whole(kPictures / (std::string(file) + ".rgb"))), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PictureOfPillow,
                         testing::Values(Kind{"rgb.png", 9, 7, 0}, Kind{"rgba.png", 9, 7, 0},
                                         Kind{"palette.png", 9, 7, 0}, Kind{"grey.png", 9, 7, 0},
                                         Kind{"grey-alpha.png", 9, 7, 0}, Kind{"bits.png", 9, 7, 0},
                                         Kind{"interlaced.png", 9, 7, 0}, Kind{"deep.png", 5, 4, 0},
                                         Kind{"rgb.jpg", 20, 14, 1}, Kind{"progressive.jpg", 20, 14, 1},
                                         Kind{"grey.jpg", 20, 14, 1}));

std::string complaint(const std::string& content, int64_t most_pixels = kPicturePixelsMost) {
  return test::message_of<InputError>(
      [&] { decode_picture(std::as_bytes(std::span(content)), "a.png", most_pixels); });
}

TEST(Picture, OtherFilesAreNamed) {
  EXPECT_EQ(complaint(""), "a.png: is neither a PNG nor a JPEG file");
  EXPECT_EQ(complaint("GIF89a"), "a.png: is neither a PNG nor a JPEG file");
  EXPECT_EQ(complaint(read_whole(kPictures / "cmyk.jpg")),
            "a.png: is a JPEG file in CMYK, expected RGB or grey");
}

TEST(Picture, EveryFileThatIsCutOffIsNamed) {
  for (const char* file : {"rgba.png", "interlaced.png", "rgb.jpg", "progressive.jpg"}) {
    const std::string whole = read_whole(kPictures / file);
    for (size_t size = 8; size + 2 < whole.size(); size += 5) {
      EXPECT_THAT(complaint(whole.substr(0, size)), StartsWith("a.png: is not a sound "))
          << file << " " << size;
    }
  }
}

TEST(Picture, ADamagedByteOfAPngIsFound) {
  const std::string whole = read_whole(kPictures / "rgb.png");
  for (size_t place = 16; place < whole.size(); ++place) {
    std::string damaged = whole;
    damaged[place] = static_cast<char>(damaged[place] ^ 0x20);
    const std::string message = complaint(damaged);
    EXPECT_THAT(message, StartsWith("a.png: ")) << place;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Picture, NothingIsDecodedThatIsTooLarge) {
  EXPECT_EQ(complaint(read_whole("fuzz/corpus/picture/bomb.png")),
            "a.png: has 60000 by 60000 pixels, expected 1 to 67108864 of them");
  EXPECT_EQ(complaint(read_whole(kPictures / "rgb.jpg"), 279),
            "a.png: has 20 by 14 pixels, expected 1 to 279 of them");
  const test::TempDir dir;
  test::write_file(dir / "large.png", "");
  std::filesystem::resize_file(dir / "large.png", kPictureBytesMost + 1);
  EXPECT_EQ(test::message_of<InputError>([&] { read_picture(dir / "large.png"); }),
            (dir / "large.png").string() + ": has 67108865 bytes, expected at most 67108864");
}

}  // namespace
}  // namespace strait
