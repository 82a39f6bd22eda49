#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strait {

/// The content of a .safetensors file: named tensors in the order of their data, and string metadata.
struct TensorFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  std::map<std::string, std::string> metadata;

  /// The tensor of that name, or nullptr.
  const at::Tensor* find(const std::string& name) const;
};

/// Reads a whole file. Nothing in it is trusted: header length, offsets, overlaps, shapes and types are
/// checked against the file's size. Throws InputError that names the file and the tensor or offset.
TensorFile read_safetensors(const std::filesystem::path& path);

/// The same from memory; `name` stands for the file in messages. The tensors do not refer to `bytes`.
TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

/// Writes the tensors in the order given, then replaces `path` in one step, so that a crash leaves either
/// the old file or the new one. Throws Error when the file cannot be written.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

}  // namespace strait
