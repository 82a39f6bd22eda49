#include "strait/formats/safetensors_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

using c10::ScalarType;

constexpr size_t kMostDimensions = 64;

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

/// Takes the events of nlohmann's parser one by one. A document tree would keep the last of two equal
/// keys without a word and would hold whatever nesting the file asks for.
class HeaderEvents final : public nlohmann::json::json_sax_t {
 public:
  HeaderEvents(std::string_view file, SafetensorsHeader& header) : file_(file), header_(header) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::start) {
      place_ = Place::root;
    } else if (place_ == Place::root_value) {
      place_ = in_metadata_ ? Place::metadata : Place::tensor;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::root ? Place::end : Place::root;
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::root) {
      begin_value(name);
    } else if (place_ == Place::metadata) {
      metadata_key_ = name;
      if (header_.metadata.contains(name)) fail("__metadata__ has the key {} twice", in_quotes(name));
      place_ = Place::metadata_value;
    } else {
      begin_field(name);
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(metadata_key_, std::move(value));
      place_ = Place::metadata;
    } else if (place_ == Place::dtype) {
      set_type(value);
      place_ = Place::tensor;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::shape) {
      place_ = Place::shape_items;
    } else if (place_ == Place::offsets) {
      place_ = Place::offset_items;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape_items) {
      add_dimension(value);
    } else if (place_ == Place::offset_items) {
      offsets_.push_back(value);
      if (offsets_.size() > 2) fail("{} has more than two data_offsets", subject());
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool number_integer(number_integer_t value) override { unexpected(fmt::format("the number {}", value)); }
  bool number_float(number_float_t, const string_t& text) override { unexpected("the number " + text); }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail("header is not JSON at offset {}", kSafetensorsPrefix + std::max<size_t>(position, 1) - 1);
  }

 private:
  enum class Place : uint8_t {
    start,
    root,
    root_value,
    tensor,
    dtype,
    shape,
    shape_items,
    offsets,
    offset_items,
    metadata,
    metadata_value,
    end
  };

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw InputError("{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  /// What the message is about, and what the parser waits for at this place.
  std::string subject() const {
    if (place_ == Place::start || place_ == Place::end) return "header";
    if (in_metadata_) return "__metadata__";
    return fmt::format("tensor {}", in_quotes(entry_.name));
  }

  const char* expectation() const {
    switch (place_) {
      case Place::dtype:
        return "dtype must be a string";
      case Place::shape:
      case Place::shape_items:
        return "shape must be a list of integers from 0";
      case Place::offsets:
      case Place::offset_items:
        return "data_offsets must be a list of two integers from 0";
      case Place::metadata_value:
        return "values must be strings";
      default:
        return "an object is expected";
    }
  }

  [[noreturn]] void unexpected(std::string_view found) const {
    fail("{}: {}, found {}", subject(), expectation(), found);
  }

  void begin_value(const std::string& name) {
    if (!names_.insert(name).second) fail("key {} appears twice", in_quotes(name));
    in_metadata_ = name == "__metadata__";
    entry_ = {};
    entry_.name = name;
    offsets_.clear();
    fields_.fill(false);
    place_ = Place::root_value;
  }

  void begin_field(const std::string& name) {
    constexpr std::array<std::pair<const char*, Place>, 3> kFields = {
        {{"dtype", Place::dtype}, {"shape", Place::shape}, {"data_offsets", Place::offsets}}};
    for (size_t i = 0; i < kFields.size(); ++i) {
      if (name != kFields[i].first) continue;
      if (std::exchange(fields_[i], true)) fail("{} has {} twice", subject(), name);
      place_ = kFields[i].second;
      return;
    }
    fail("{} has the unknown key {}, expected dtype, shape and data_offsets", subject(), in_quotes(name));
  }

  void set_type(const std::string& value) {
    for (const auto& [name, type] : kTypes) {
      if (value == name) entry_.type = type;
    }
    if (entry_.type == ScalarType::Undefined) {
      std::vector<std::string> names;
      names.reserve(kTypes.size());
      for (const auto& [name, type] : kTypes) names.emplace_back(name);
      fail("{} has dtype {}, expected one of {}", subject(), in_quotes(value), list_of(names));
    }
  }

  void add_dimension(uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail("{} has a dimension of {}, which is too large", subject(), value);
    }
    if (entry_.shape.size() == kMostDimensions) {
      fail("{} has more than {} dimensions", subject(), kMostDimensions);
    }
    entry_.shape.push_back(static_cast<int64_t>(value));
  }

  void finish_tensor() {
    constexpr std::array<const char*, 3> kNames = {"dtype", "shape", "data_offsets"};
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (!fields_[i]) fail("{} has no {}", subject(), kNames[i]);
    }
    if (offsets_.size() != 2) fail("{} has {} data_offsets, expected two", subject(), offsets_.size());
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    header_.entries.push_back(std::move(entry_));
  }

  std::string_view file_;
  SafetensorsHeader& header_;
  Place place_ = Place::start;
  bool in_metadata_ = false;
  std::unordered_set<std::string> names_;
  TensorEntry entry_;
  std::vector<uint64_t> offsets_;
  std::array<bool, 3> fields_{};
  std::string metadata_key_;
};

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
  const auto* begin = reinterpret_cast<const char*>(json.data());
  if (json.empty() || *begin != '{') {
    throw InputError("{}: header at offset {} does not begin with \"{{\"", file, kSafetensorsPrefix);
  }
  SafetensorsHeader header;
  HeaderEvents events(file, header);
  nlohmann::json::sax_parse(begin, begin + json.size(), &events);
  // The parser takes a NUL for the end of the header, whatever follows.
  if (const auto* nul = std::find(begin, begin + json.size(), '\0'); nul != begin + json.size()) {
    throw InputError("{}: header is not JSON at offset {}", file, kSafetensorsPrefix + (nul - begin));
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
