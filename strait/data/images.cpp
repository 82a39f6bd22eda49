#include "strait/data/images.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/base/rule.h"

namespace strait {
namespace {

constexpr uint64_t kAugmentationTag = 0x6175676d656e74;  // "augment"

/// One row of 32 pixels out of a row of 40, through the table of normalised values.
void copy_row(const uint8_t* padded, bool flip, const std::array<float, 256>& table, float* out) {
  if (flip) {
    for (int64_t x = 0; x < kImageSide; ++x) out[x] = table[padded[kImageSide - 1 - x]];
  } else {
    for (int64_t x = 0; x < kImageSide; ++x) out[x] = table[padded[x]];
  }
}

}  // namespace

Augmentation draw_augmentation(uint64_t key, int64_t id, int64_t border) {
  CounterRandom random(make_key(kAugmentationTag, key, id));
  Augmentation drawn;
  drawn.top = static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * border + 1)));
  drawn.left = static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * border + 1)));
  drawn.flip = random.below(2) == 1;
  return drawn;
}

SettingKey augment_key() {
  return {"augment", true, yes_or_no(),
          "shift training pictures by up to 4 pixels, over black, and mirror half of them"};
}

ImageDataset::ImageDataset(ImageRecords records, const Normalisation& normalisation, bool augment)
    : records_(std::move(records)), augment_(augment) {
  STRAIT_CHECK(records_.pixels.size() == records_.labels.size() * kImageBytes,
               "{} labels do not go with {} bytes of pixels", records_.labels.size(), records_.pixels.size());
  for (size_t channel = 0; channel < kImageChannels; ++channel) {
    for (size_t value = 0; value < 256; ++value) {
      const float scaled = static_cast<float>(value) / 255.0F;
      normalised_[channel][value] = (scaled - normalisation.mean[channel]) / normalisation.deviation[channel];
    }
  }
}

void ImageDataset::copy_image(int64_t id, const Augmentation& augmentation, float* out) const {
  std::array<uint8_t, kImageSide + 2 * kCropPadding> padded{};  // the border stays 0, which is black
  const uint8_t* plane = records_.pixels.data() + id * kImageBytes;
  for (int64_t channel = 0; channel < kImageChannels; ++channel, plane += kPlanePixels) {
    const auto& table = normalised_[static_cast<size_t>(channel)];
    for (int64_t y = 0; y < kImageSide; ++y, out += kImageSide) {
      const int64_t row = y + augmentation.top - kCropPadding;
      if (row < 0 || row >= kImageSide) {
        std::fill_n(out, kImageSide, table[0]);
        continue;
      }
      std::copy_n(plane + row * kImageSide, kImageSide, padded.data() + kCropPadding);
      copy_row(padded.data() + augmentation.left, augmentation.flip, table, out);
    }
  }
}

std::vector<int64_t> ImageDataset::classes(std::span<const int64_t> ids) const {
  std::vector<int64_t> labels;
  for (const int64_t id : ids) labels.push_back(records_.labels.at(static_cast<size_t>(id)));
  return labels;
}

Batch ImageDataset::batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const {
  const auto count = static_cast<int64_t>(ids.size());
  Batch batch;
  batch.inputs = at::empty({count, kImageChannels, kImageSide, kImageSide}, at::kFloat);
  batch.targets = at::empty({count}, at::kLong);
  batch.ids.assign(ids.begin(), ids.end());
  auto* out = batch.inputs.data_ptr<float>();
  auto* target = batch.targets.data_ptr<int64_t>();
  for (const int64_t id : ids) {
    STRAIT_CHECK(id >= 0 && id < size(), "sample {} is asked of a data set of {}", id, size());
    const auto augmentation =
        augmentation_key && augment_ ? draw_augmentation(*augmentation_key, id) : Augmentation{};
    copy_image(id, augmentation, out);
    out += kImageBytes;
    *target++ = records_.labels[static_cast<size_t>(id)];
  }
  return batch;
}

}  // namespace strait
