#include "strait/data/cifar10.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/data/kinds.h"
#include "strait/data/limits.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFileBytes = kCifarFileRecords * kCifarRecordBytes;
constexpr int64_t kRecordsPerRead = 1000;
constexpr Normalisation kNormalisation{{0.4914F, 0.4822F, 0.4465F}, {0.2023F, 0.1994F, 0.2010F}};

constexpr std::string_view kCifar10Advice =
    "data.root (or STRAIT_DATA) must name the folder that holds cifar-10-batches-bin/data_batch_1.bin, "
    "which \"strait data get cifar10\" fetches";

fs::path folder_of(const DataOptions& options) {
  if (options.root.empty()) throw InputError("data.root is not set: {}", kCifar10Advice);
  return fs::path(options.root) / kCifarFolder;
}

std::shared_ptr<const Dataset> load_train(const fs::path& folder, int64_t count, bool augment) {
  ImageRecords images;
  for (int64_t file = 0; file * kCifarFileRecords < count; ++file) {
    const int64_t wanted = std::min(count - file * kCifarFileRecords, kCifarFileRecords);
    append_cifar10_file(folder / fmt::format("data_batch_{}.bin", file + 1), wanted, images);
  }
  return std::make_shared<ImageDataset>(std::move(images), kNormalisation, augment);
}

std::shared_ptr<const Dataset> load_test(const fs::path& folder, int64_t count) {
  ImageRecords images;
  append_cifar10_file(folder / "test_batch.bin", count, images);
  return std::make_shared<ImageDataset>(std::move(images), kNormalisation);
}

}  // namespace

void append_cifar10_records(std::span<const std::byte> bytes, std::string_view file, int64_t first_record,
                            ImageRecords& images) {
  const auto count = static_cast<int64_t>(bytes.size()) / kCifarRecordBytes;
  if (static_cast<int64_t>(bytes.size()) % kCifarRecordBytes != 0) {
    const int64_t offset = first_record * kCifarRecordBytes + static_cast<int64_t>(bytes.size());
    throw InputError("{}: ends at offset {} inside record {}, which has {} bytes", file, offset,
                     first_record + count, kCifarRecordBytes);
  }
  const auto* record = reinterpret_cast<const uint8_t*>(bytes.data());
  for (int64_t i = 0; i < count; ++i, record += kCifarRecordBytes) {
    if (record[0] >= kCifarClasses) {
      const int64_t position = first_record + i;
      throw InputError("{}: record {} at offset {} has label {}, expected 0 to {}", file, position,
                       position * kCifarRecordBytes, record[0], kCifarClasses - 1);
    }
    images.labels.push_back(record[0]);
    images.pixels.insert(images.pixels.end(), record + 1, record + kCifarRecordBytes);
  }
}

void append_cifar10_file(const fs::path& path, int64_t count, ImageRecords& images) {
  if (!is_there(path)) throw InputError("{}: no such file; {}", path.string(), kCifar10Advice);
  const InputFile file(path);
  if (file.size() != static_cast<uint64_t>(kFileBytes)) {
    throw InputError("{}: has {} bytes, expected {} ({} records of {} bytes)", file.name(), file.size(),
                     kFileBytes, kCifarFileRecords, kCifarRecordBytes);
  }
  images.labels.reserve(images.labels.size() + static_cast<size_t>(count));
  images.pixels.reserve(images.pixels.size() + static_cast<size_t>(count * kImageBytes));
  std::vector<std::byte> block(static_cast<size_t>(kRecordsPerRead * kCifarRecordBytes));
  for (int64_t first = 0; first < count; first += kRecordsPerRead) {
    const auto wanted = static_cast<size_t>(std::min(kRecordsPerRead, count - first) * kCifarRecordBytes);
    const auto records = std::span(block).first(wanted);
    file.read(static_cast<uint64_t>(first * kCifarRecordBytes), records);
    append_cifar10_records(records, file.name(), first, images);
  }
}

DataSplits load_cifar10(const DataOptions& options) {
  const auto folder = folder_of(options);
  const int64_t train = limited("data.train_limit", options.train_limit, kCifarTrainFiles * kCifarFileRecords);
  const int64_t test = limited("data.test_limit", options.test_limit, kCifarFileRecords);
  return {load_train(folder, train, options.settings.flag("augment")), load_test(folder, test)};
}

DataKind cifar10_kind() {
  DataKind kind;
  kind.name = "cifar10";
  kind.task = "classification";
  kind.keys = {augment_key()};
  kind.form = [](const DataOptions&) -> SampleForm {
    return {{kImageChannels, kImageSide, kImageSide}, kCifarClasses};
  };
  kind.load = load_cifar10;
  return kind;
}

}  // namespace strait
