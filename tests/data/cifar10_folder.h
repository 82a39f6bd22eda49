#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "strait/base/random.h"
#include "strait/data/cifar10.h"
#include "strait/data/images.h"

namespace strait::test {

/// The byte that `pixel` of `record` has in file number `file` of a folder made here.
inline uint8_t cifar_byte(int64_t file, int64_t record, int64_t pixel) {
  return static_cast<uint8_t>(CounterRandom(make_key(1, file, record)).word(static_cast<uint64_t>(pixel)));
}

inline uint8_t cifar_label(int64_t file, int64_t record) { return static_cast<uint8_t>((file + record) % 10); }

/// A file of full size whose records 0, 1 and 9,999 are filled and whose others are black with label 0;
/// the file system stores those as a hole.
inline void write_cifar_file(const std::filesystem::path& path, int64_t file) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  for (const int64_t record : {0, 1, 9999}) {
    std::string bytes(1, static_cast<char>(cifar_label(file, record)));
    for (int64_t i = 0; i < kImageBytes; ++i) bytes += static_cast<char>(cifar_byte(file, record, i));
    out.seekp(record * kCifarRecordBytes);
    out << bytes;
  }
}

inline void set_byte(const std::filesystem::path& path, int64_t offset, uint8_t value) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(offset);
  file.put(static_cast<char>(value));
}

/// The six files under root; the test file is number 6.
inline void write_cifar_folder(const std::filesystem::path& root) {
  const auto folder = root / kCifarFolder;
  for (int64_t file = 1; file <= 5; ++file) {
    write_cifar_file(folder / ("data_batch_" + std::to_string(file) + ".bin"), file);
  }
  write_cifar_file(folder / "test_batch.bin", 6);
}

}  // namespace strait::test
