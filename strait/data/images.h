#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strait/base/settings.h"
#include "strait/data/dataset.h"

namespace strait {

/// Rows of a picture, and columns.
inline constexpr int64_t kImageSide = 32;

/// Red, green and blue.
inline constexpr int64_t kImageChannels = 3;

/// Pixels of a picture.
inline constexpr int64_t kPlanePixels = kImageSide * kImageSide;

/// Bytes of a picture.
inline constexpr int64_t kImageBytes = kImageChannels * kPlanePixels;

/// Width of the black border from which a window is cut, in pixels.
inline constexpr int64_t kCropPadding = 4;

/// Pictures and their labels as bytes: each picture is three planes (red, green, blue) of 32 rows.
struct ImageRecords {
  std::vector<uint8_t> pixels;  ///< labels.size() * kImageBytes
  std::vector<uint8_t> labels;  ///< one per picture
};

/// A byte v of channel c becomes (v / 255 - mean[c]) / deviation[c], each step rounded to float32.
struct Normalisation {
  std::array<float, kImageChannels> mean;       ///< in units of 255
  std::array<float, kImageChannels> deviation;  ///< likewise
};

/// What is done to one picture in training: a 32x32 window of the picture with a black border of 4
/// pixels, then perhaps a mirror image of the window.
struct Augmentation {
  int64_t top = kCropPadding;   ///< first row of the window, 0 to 8
  int64_t left = kCropPadding;  ///< first column of the window, 0 to 8
  bool flip = false;            ///< left and right exchanged

  bool operator==(const Augmentation&) const = default;
};

/// The draws for sample `id` under `key` with such a border, a window's first row and column from 0 to twice
/// it; they depend on nothing else.
Augmentation draw_augmentation(uint64_t key, int64_t id, int64_t border = kCropPadding);

/// The key of a kind of data whether training pictures are augmented, `augment`.
SettingKey augment_key();

/// Pictures of 32x32 pixels held as bytes; batches are made on demand. The border of the augmentation is
/// black before the normalisation, as in torchvision, so it is not zero after it.
class ImageDataset final : public Dataset {
 public:
  /// Takes over the pictures, whose labels and pixels fit each other. Without `augment` training has them as
  /// they are.
  ImageDataset(ImageRecords records, const Normalisation& normalisation, bool augment = true);

  /// How many pictures there are.
  int64_t size() const override { return static_cast<int64_t>(records_.labels.size()); }
  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const override;
  std::vector<int64_t> classes(std::span<const int64_t> ids) const override;

  /// The pictures as bytes, neither augmented nor normalised.
  const ImageRecords& records() const { return records_; }

 private:
  void copy_image(int64_t id, const Augmentation& augmentation, float* out) const;

  ImageRecords records_;
  bool augment_;
  std::array<std::array<float, 256>, kImageChannels> normalised_;
};

}  // namespace strait
