#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/named_tensors.h"
#include "strait/formats/safetensors_header.h"

namespace strait {

/// The content of a .safetensors file: named tensors in the order of their data, and string metadata.
struct TensorFile {
  NamedTensors tensors;                         ///< by name
  std::map<std::string, std::string> metadata;  ///< the file's `__metadata__`

  /// The tensor of that name, or nullptr.
  const at::Tensor* find(const std::string& name) const;
};

/// A .safetensors file of which single tensors are read. Nothing in it is trusted: header length, offsets,
/// overlaps, shapes and types are checked against the file's size before any data is read.
class SafetensorsReader {
 public:
  /// Throws InputError that names the file and the tensor or offset.
  explicit SafetensorsReader(const std::filesystem::path& path);

  /// The same from memory, which must outlive the reader; `name` stands for the file in messages.
  SafetensorsReader(std::span<const std::byte> bytes, std::string_view name);

  /// The file's name for messages.
  const std::string& name() const { return name_; }

  /// What is in the file.
  const SafetensorsHeader& header() const { return header_; }

  /// The entry of that name, or nullptr.
  const TensorEntry* find(std::string_view name) const;

  /// Reads straight into `value` where it is defined, dense on the CPU and of the entry's shape and type, so
  /// that state over a mapped file stays there; otherwise replaces it by a new tensor. Throws InputError.
  void read(const TensorEntry& entry, at::Tensor& value) const;

 private:
  using Source = std::function<void(uint64_t offset, std::span<std::byte> out)>;
  SafetensorsReader(std::string name, uint64_t file_bytes, Source source);

  std::string name_;
  Source source_;
  uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
  std::vector<size_t> by_name_;  ///< places of the entries in the order of their names
};

/// Reads a whole file; see SafetensorsReader for the checks.
TensorFile read_safetensors(const std::filesystem::path& path);

/// The same from memory. The tensors do not refer to `bytes`.
TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

/// Hears of each tensor as it is written, with its type and shape and its bytes in the file.
using WriteObserver = std::function<void(const TensorEntry& entry, std::span<const std::byte> bytes)>;

/// Writes the tensors in the order given, one after another straight from their memory, then replaces
/// `path` in one step, so that a crash leaves either the old file or the new one. Throws Error when the file
/// cannot be written.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file,
                       const WriteObserver& observer = {});

}  // namespace strait
