#include "strait/formats/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/base/json_reader.h"
#include "strait/base/text.h"

namespace strait {
namespace {

using c10::ScalarType;

constexpr size_t kMostDimensions = 64;
constexpr std::string_view kMetadata = "__metadata__";
constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

constexpr std::array<std::pair<const char*, ScalarType>, 10> kTypes = {{{"F64", ScalarType::Double},
                                                                        {"F32", ScalarType::Float},
                                                                        {"F16", ScalarType::Half},
                                                                        {"BF16", ScalarType::BFloat16},
                                                                        {"I64", ScalarType::Long},
                                                                        {"I32", ScalarType::Int},
                                                                        {"I16", ScalarType::Short},
                                                                        {"I8", ScalarType::Char},
                                                                        {"U8", ScalarType::Byte},
                                                                        {"BOOL", ScalarType::Bool}}};

ScalarType type_in(const JsonReader& tensor) {
  const std::string name = tensor.text("dtype");
  const auto found = std::ranges::find(kTypes, name, [](const auto& type) { return type.first; });
  if (found != kTypes.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(kTypes.size());
  for (const auto& [known, type] : kTypes) names.emplace_back(known);
  tensor.at("dtype").fail("one of " + list_of(names));
}

std::vector<int64_t> shape_in(const JsonReader& shape) {
  if (shape.size() > kMostDimensions) shape.fail(fmt::format("at most {} dimensions", kMostDimensions));
  std::vector<int64_t> sizes;
  sizes.reserve(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    sizes.push_back(static_cast<int64_t>(shape.count(i, std::numeric_limits<int64_t>::max())));
  }
  return sizes;
}

TensorEntry tensor_in(const std::string& name, const nlohmann::json& value, std::string_view file) {
  const std::string origin = fmt::format("{}: tensor {}", file, in_quotes(name));
  const JsonReader tensor(value, origin);
  for (const auto& key : tensor.keys()) {
    if (std::ranges::find(kFields, key) == kFields.end()) {
      throw InputError("{}: tensor {} has the unknown key {}, expected {}", file, in_quotes(name),
                       in_quotes(key), fmt::join(kFields, ", "));
    }
  }
  const JsonReader offsets = tensor.at("data_offsets");
  if (offsets.size() != 2) offsets.fail("an array of two integers");
  return {name, type_in(tensor), shape_in(tensor.at("shape")), offsets.count(0), offsets.count(1)};
}

std::map<std::string, std::string> metadata_in(const nlohmann::json& value, std::string_view file) {
  const std::string origin = fmt::format("{}: {}", file, kMetadata);
  const JsonReader from(value, origin);
  std::map<std::string, std::string> metadata;
  for (const auto& key : from.keys()) metadata.emplace(key, from.text(key));
  return metadata;
}

void check_extent(const TensorEntry& entry, uint64_t data_bytes, std::string_view file) {
  const auto bytes = tensor_bytes(entry.shape, c10::elementSize(entry.type));
  if (!bytes) {
    throw InputError("{}: tensor {} of shape {} is too large", file, in_quotes(entry.name),
                     shape_text(entry.shape));
  }
  if (entry.begin > entry.end || entry.end > data_bytes) {
    throw InputError("{}: tensor {} has data_offsets [{}, {}], expected them in order and within 0 to {}", file,
                     in_quotes(entry.name), entry.begin, entry.end, data_bytes);
  }
  if (entry.end - entry.begin != *bytes) {
    throw InputError("{}: tensor {} of {} {} needs {} bytes, but its data_offsets [{}, {}] give {}", file,
                     in_quotes(entry.name), safetensors_type_name(entry.type), shape_text(entry.shape), *bytes,
                     entry.begin, entry.end, entry.end - entry.begin);
  }
}

/// Sorts by place in the data; the parts must then follow one another to the end.
void order_and_check_cover(SafetensorsHeader& header, uint64_t data_bytes, std::string_view file) {
  std::ranges::stable_sort(header.entries, {}, [](const auto& e) { return std::tuple(e.begin, e.end); });
  uint64_t reached = 0;
  for (const auto& entry : header.entries) {
    if (entry.begin != reached) {
      throw InputError("{}: tensor {} begins at data offset {}, expected {} ({})", file, in_quotes(entry.name),
                       entry.begin, reached, entry.begin < reached ? "it overlaps another" : "a gap");
    }
    reached = entry.end;
  }
  if (reached != data_bytes) {
    throw InputError("{}: {} bytes follow the last tensor, which ends at data offset {}", file,
                     data_bytes - reached, reached);
  }
}

}  // namespace

uint64_t safetensors_header_length(std::span<const std::byte> prefix, uint64_t file_bytes,
                                   std::string_view file) {
  if (prefix.size() < kSafetensorsPrefix || file_bytes < kSafetensorsPrefix) {
    throw InputError("{}: is not a safetensors file (has {} bytes, expected at least {})", file, file_bytes,
                     kSafetensorsPrefix);
  }
  uint64_t length = 0;
  std::memcpy(&length, prefix.data(), sizeof(length));
  if (length > kSafetensorsHeaderMost) {
    throw InputError("{}: is not a safetensors file (header length is {}, expected at most {})", file, length,
                     kSafetensorsHeaderMost);
  }
  if (length > file_bytes - kSafetensorsPrefix) {
    throw InputError("{}: header length is {}, but only {} bytes follow it", file, length,
                     file_bytes - kSafetensorsPrefix);
  }
  return length;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> json, uint64_t data_bytes,
                                           std::string_view file) {
  const std::string_view text(reinterpret_cast<const char*>(json.data()), json.size());
  if (!text.starts_with('{')) {
    throw InputError("{}: header at offset {} does not begin with \"{{\"", file, kSafetensorsPrefix);
  }
  const auto root = parse_json(text, fmt::format("{}: header", file));
  SafetensorsHeader header;
  header.entries.reserve(root.size());
  for (const auto& [name, value] : root.items()) {
    if (name == kMetadata) {
      header.metadata = metadata_in(value, file);
    } else {
      header.entries.push_back(tensor_in(name, value, file));
    }
  }
  for (const auto& entry : header.entries) check_extent(entry, data_bytes, file);
  order_and_check_cover(header, data_bytes, file);
  return header;
}

const char* safetensors_type_name(c10::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return name;
  }
  return nullptr;
}

std::optional<uint64_t> tensor_bytes(std::span<const int64_t> shape, size_t element_bytes) {
  auto bytes = static_cast<int64_t>(element_bytes);
  bool empty = false;
  for (const int64_t dimension : shape) {
    empty = empty || dimension == 0;
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dimension, 1), &bytes)) return std::nullopt;
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

}  // namespace strait
