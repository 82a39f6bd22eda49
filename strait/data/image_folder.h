#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "strait/data/dataset.h"
#include "strait/data/picture.h"

namespace strait {

/// What becomes of a picture file on its way into a batch.
struct PictureForm {
  int64_t size = 32;                 ///< rows and columns
  std::array<float, 3> mean{};       ///< of each channel, in units of 255
  std::array<float, 3> deviation{};  ///< likewise
  bool augment = true;               ///< in training
};

/// A file and the number of its class.
struct LabelledFile {
  std::filesystem::path path;  ///< of the picture
  int64_t label = 0;           ///< from 0 on
};

/// The names of the folders in `folder`, sorted by bytes: the classes in the order of their labels. Hidden ones
/// are left out. Throws InputError where there are none.
std::vector<std::string> class_names(const std::filesystem::path& folder);

/// The pictures (.png, .jpg, .jpeg, also in capitals) at any depth in the folders of `folder` that are named as
/// the classes. Of each class they are sorted; together they go round the classes, so that the first so many
/// are of all of them. Hidden files and folders are left out; a link to a file is followed, one to a folder
/// only where it is a class's. Throws InputError for a class that `classes` lacks, and for one whose folder has
/// no picture, as torchvision's ImageFolder does: it would be an output that nothing trains.
std::vector<LabelledFile> labelled_files(const std::filesystem::path& folder,
                                         const std::vector<std::string>& classes);

/// The picture with its shorter side scaled to `size` (torchvision's Resize: bilinear with antialiasing, the
/// longer side rounded down) and the middle cut out of it (CenterCrop): [3, size, size] float32, whole numbers
/// from 0 to 255. Throws InputError that begins with `file` for a picture so narrow that scaling it is too
/// much.
at::Tensor fitted(const Picture& picture, int64_t size, std::string_view file);

/// Pictures in files, which are read and decoded when a batch asks for them. A byte v of channel c becomes
/// (v / 255 - mean[c]) / deviation[c]; in training a window of the picture with a black border of an eighth of
/// its size is drawn first, and perhaps mirrored (draw_augmentation()).
class ImageFolder final : public Dataset {
 public:
  /// The samples are the files, in that order.
  ImageFolder(std::vector<LabelledFile> files, const PictureForm& form);

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }

  /// Throws InputError that names a file which cannot be used.
  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const override;
  std::vector<int64_t> classes(std::span<const int64_t> ids) const override;

 private:
  at::Tensor sample(int64_t id, std::optional<uint64_t> augmentation_key) const;

  std::vector<LabelledFile> files_;
  PictureForm form_;
  at::Tensor mean_;       ///< [3, 1, 1]
  at::Tensor deviation_;  ///< likewise
};

/// The kind "images": train/CLASS/ and test/CLASS/ under `options.root`, as torchvision's ImageFolder has them.
/// Throws InputError.
DataSplits load_images(const DataOptions& options);

}  // namespace strait
