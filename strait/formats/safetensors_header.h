#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strait {

/// The layout of a .safetensors file: 8 bytes header length N (little-endian), N bytes of JSON that begin
/// with "{" and may end in spaces, then the data to the end of the file.
inline constexpr size_t kSafetensorsPrefix = 8;

/// The most bytes of JSON that a file may have, as in Hugging Face's safetensors.
inline constexpr uint64_t kSafetensorsHeaderMost = 100'000'000;

/// One tensor of the header.
struct TensorEntry {
  std::string name;                                   ///< unique in the file
  c10::ScalarType type = c10::ScalarType::Undefined;  ///< of the elements
  std::vector<int64_t> shape;                         ///< row-major
  uint64_t begin = 0;                                 ///< offsets in the data, begin <= end
  uint64_t end = 0;                                   ///< offset behind the last byte
};

/// What the JSON says.
struct SafetensorsHeader {
  std::vector<TensorEntry> entries;             ///< in the order of their data, which they cover without a gap
  std::map<std::string, std::string> metadata;  ///< strings by name
};

/// The header's length. Throws InputError where the file is too short for it or it is above the limit.
uint64_t safetensors_header_length(std::span<const std::byte> prefix, uint64_t file_bytes,
                                   std::string_view file);

/// Parses the JSON and checks it against the size of the data: types, shapes, offsets, gaps, overlaps and
/// repeated keys. `file` is for messages. Throws InputError.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> json, uint64_t data_bytes,
                                           std::string_view file);

/// The format's name of a type, or nullptr for a type that it does not have.
const char* safetensors_type_name(c10::ScalarType type);

/// The number of bytes of a tensor, or nothing where it does not fit in 63 bits. Dimensions of zero are
/// counted as one in that test, because strides are computed from the others.
std::optional<uint64_t> tensor_bytes(std::span<const int64_t> shape, size_t element_bytes);

}  // namespace strait
