#include "strait/data/image_folder.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
#include "strait/data/images.h"
#include "strait/data/kinds.h"
#include "strait/data/limits.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kImagesAdvice =
    "data.root (or STRAIT_DATA) must name the folder that holds train/CLASS/ and test/CLASS/ with the pictures";

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool names_picture(const fs::path& path) {
  std::string end = path.extension().string();
  std::ranges::transform(end, end.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end == ".png" || end == ".jpg" || end == ".jpeg";
}

/// What `look` finds in a folder that may not be there, or not be readable.
template <class Look>
auto in_folder(const fs::path& folder, const Look& look) {
  if (!has_folder(folder)) throw InputError("{}: no such folder; {}", folder.string(), kImagesAdvice);
  try {
    return look();
  } catch (const fs::filesystem_error& error) {
    throw InputError("{}: cannot be read: {}", error.path1().string(), error.code().message());
  }
}

/// The folders that stand for classes, or other names of them.
std::vector<std::string> folders_in(const fs::path& folder) {
  return in_folder(folder, [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && !is_hidden(entry.path())) names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  });
}

std::vector<fs::path> pictures_in(const fs::path& folder) {
  return in_folder(folder, [&] {
    std::vector<fs::path> paths;
    auto place = fs::recursive_directory_iterator(folder);  // follows no link
    for (; place != fs::recursive_directory_iterator(); ++place) {
      if (is_hidden(place->path())) {
        place.disable_recursion_pending();
      } else if (names_picture(place->path()) && place->is_regular_file()) {
        paths.push_back(place->path());
      }
    }
    std::ranges::sort(paths);
    return paths;
  });
}

/// (x - size) / 2 as torchvision rounds it: to the even neighbour.
int64_t margin(int64_t side, int64_t size) {
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(side - size) / 2));
}

at::Tensor per_channel(const std::array<float, 3>& values) {
  at::Tensor tensor = at::empty({3, 1, 1}, at::kFloat);
  std::ranges::copy(values, tensor.data_ptr<float>());
  return tensor;
}

std::array<float, 3> three(const std::vector<double>& values) {
  std::array<float, 3> result{};
  std::ranges::transform(values, result.begin(), [](double value) { return static_cast<float>(value); });
  return result;
}

SampleForm form_of_images(const DataOptions& options) {
  const int64_t size = options.settings.integer("size");
  return {{3, size, size}, std::ssize(class_names(fs::path(options.root) / "train"))};
}

}  // namespace

std::vector<std::string> class_names(const fs::path& folder) {
  auto names = folders_in(folder);
  if (names.empty()) throw InputError("{}: has no folder of a class; {}", folder.string(), kImagesAdvice);
  return names;
}

std::vector<LabelledFile> labelled_files(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<std::vector<fs::path>> of_class(classes.size());
  size_t most = 0;
  for (const auto& name : folders_in(folder)) {
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end()) {
      throw InputError("{}: is no class of the training set, which has {}{}", (folder / name).string(),
                       list_of(classes), suggestion(name, classes));
    }
    auto& paths = of_class[static_cast<size_t>(found - classes.begin())];
    paths = pictures_in(folder / name);
    if (paths.empty()) {
      throw InputError("{}: has no picture (.png, .jpg, .jpeg), expected one in the folder of a class",
                       (folder / name).string());
    }
    most = std::max(most, paths.size());
  }
  if (most == 0) throw InputError("{}: has no folder of a class; {}", folder.string(), kImagesAdvice);
  std::vector<LabelledFile> files;
  for (size_t i = 0; i < most; ++i) {
    for (size_t label = 0; label < classes.size(); ++label) {
      if (i < of_class[label].size()) files.push_back({of_class[label][i], static_cast<int64_t>(label)});
    }
  }
  return files;
}

at::Tensor fitted(const Picture& picture, int64_t size, std::string_view file) {
  const int64_t shorter = std::min(picture.height, picture.width);
  const auto scaled = [&](int64_t side) { return side == shorter ? size : size * side / shorter; };
  const int64_t height = scaled(picture.height);
  const int64_t width = scaled(picture.width);
  if (height > kPicturePixelsMost / width) {
    throw InputError("{}: has {} by {} pixels, too narrow to be scaled to {} rows and columns", file,
                     picture.width, picture.height, size);
  }
  // from_blob() wants a pointer to what it may change, and nothing does.
  auto* pixels = const_cast<uint8_t*>(picture.rgb.data());
  at::Tensor x = at::from_blob(pixels, {1, picture.height, picture.width, 3}, at::kByte)
                     .permute({0, 3, 1, 2})
                     .to(at::kFloat)
                     .contiguous();
  if (height != picture.height || width != picture.width) {
    x = at::_upsample_bilinear2d_aa(x, {height, width}, /*align_corners=*/false, c10::nullopt, c10::nullopt);
    x = x.round_().clamp_(0, 255);
  }
  return x[0].narrow(1, margin(height, size), size).narrow(2, margin(width, size), size);
}

ImageFolder::ImageFolder(std::vector<LabelledFile> files, const PictureForm& form)
    : files_(std::move(files)),
      form_(form),
      mean_(per_channel(form.mean)),
      deviation_(per_channel(form.deviation)) {}

at::Tensor ImageFolder::sample(int64_t id, std::optional<uint64_t> augmentation_key) const {
  const auto& path = files_[static_cast<size_t>(id)].path;
  at::Tensor x = fitted(read_picture(path), form_.size, path.string());
  if (augmentation_key && form_.augment) {
    const int64_t border = form_.size / 8;
    const Augmentation drawn = draw_augmentation(*augmentation_key, id, border);
    x = at::constant_pad_nd(x, {border, border, border, border})
            .narrow(1, drawn.top, form_.size)
            .narrow(2, drawn.left, form_.size);
    if (drawn.flip) x = x.flip({2});
  }
  return x.div(255).sub(mean_).div(deviation_);
}

std::vector<int64_t> ImageFolder::classes(std::span<const int64_t> ids) const {
  std::vector<int64_t> labels;
  for (const int64_t id : ids) labels.push_back(files_.at(static_cast<size_t>(id)).label);
  return labels;
}

Batch ImageFolder::batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const {
  const auto count = static_cast<int64_t>(ids.size());
  Batch batch;
  batch.inputs = at::empty({count, 3, form_.size, form_.size}, at::kFloat);
  batch.targets = at::empty({count}, at::kLong);
  batch.ids.assign(ids.begin(), ids.end());
  auto* targets = batch.targets.data_ptr<int64_t>();
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = ids[static_cast<size_t>(i)];
      STRAIT_CHECK(id >= 0 && id < size(), "sample {} is asked of a data set of {}", id, size());
      batch.inputs[i].copy_(sample(id, augmentation_key));
      targets[i] = files_[static_cast<size_t>(id)].label;
    }
  });
  return batch;
}

DataSplits load_images(const DataOptions& options) {
  const fs::path root = options.root;
  const auto classes = class_names(root / "train");
  const PictureForm form{.size = options.settings.integer("size"),
                         .mean = three(options.settings.numbers("mean")),
                         .deviation = three(options.settings.numbers("std")),
                         .augment = options.settings.flag("augment")};
  const auto load = [&](const char* split, std::string_view key, int64_t limit) {
    auto files = labelled_files(root / split, classes);
    files.resize(static_cast<size_t>(limited(key, limit, std::ssize(files))));
    return std::make_shared<ImageFolder>(std::move(files), form);
  };
  return {load("train", "data.train_limit", options.train_limit),
          load("test", "data.test_limit", options.test_limit)};
}

DataKind images_kind() {
  DataKind kind;
  kind.name = "images";
  kind.task = "classification";
  kind.keys = {
      {"size", 32, from_to(8, 4096), "rows and columns: the shorter side is scaled to it, the middle cut out"},
      {"mean", std::vector<double>{0.485, 0.456, 0.406}, three_numbers(),
       "subtracted from red, green and blue, which are 0 to 1"},
      {"std", std::vector<double>{0.229, 0.224, 0.225}, three_positive(), "what they are then divided by"},
      {"augment", true, yes_or_no(),
       "shift training pictures by up to an eighth of the size, over black, and mirror half of them"},
  };
  kind.form = form_of_images;
  kind.load = load_images;
  return kind;
}

}  // namespace strait
