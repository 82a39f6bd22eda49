#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "strait/data/images.h"

namespace strait {

/// Bytes of a record: the label, then the picture.
inline constexpr int64_t kCifarRecordBytes = 1 + kImageBytes;

/// Records of each of the six files.
inline constexpr int64_t kCifarFileRecords = 10000;

/// Files of the training set; one more is the test set.
inline constexpr int64_t kCifarTrainFiles = 5;

/// Labels are below it.
inline constexpr int64_t kCifarClasses = 10;

/// The folder of the files under data.root, as the official archive has it.
inline constexpr std::string_view kCifarFolder = "cifar-10-batches-bin";

/// Appends the records in `bytes` (one label byte, then the three planes) to `images`. `file` is for
/// messages and `first_record` the place in it where `bytes` begin. Throws InputError for a label above 9
/// and for bytes that end inside a record; `images` is then unspecified.
void append_cifar10_records(std::span<const std::byte> bytes, std::string_view file, int64_t first_record,
                            ImageRecords& images);

/// Appends the first `count` of the 10,000 records of a file; the rest of the file is not read, but its
/// size is checked. Throws InputError that names the file.
void append_cifar10_file(const std::filesystem::path& path, int64_t count, ImageRecords& images);

/// The training and test set of the folder cifar-10-batches-bin/ under `options.root`, in the official
/// order. Only the files that the limits reach into are opened. Throws InputError.
DataSplits load_cifar10(const DataOptions& options);

}  // namespace strait
