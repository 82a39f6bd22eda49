#include "strait/base/json_reader.h"

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/base/text.h"

namespace strait {

using nlohmann::json;

void JsonReader::fail(std::string_view expected) const {
  const std::string found =
      value_.is_primitive() ? value_.dump(-1, ' ', true, json::error_handler_t::replace) : value_.type_name();
  throw InputError("{}: {}expected {}, found {}", origin_, path_.empty() ? "" : one_line(path_) + ": ",
                   expected, shortened(found));
}

bool JsonReader::is_null() const { return value_.is_null(); }

bool JsonReader::is_array() const { return value_.is_array(); }

bool JsonReader::has(const std::string& key) const { return value_.is_object() && value_.contains(key); }

JsonReader JsonReader::at(const std::string& key) const {
  if (!value_.is_object()) fail("an object");
  const std::string path = path_.empty() ? key : path_ + "." + key;
  const auto member = value_.find(key);
  if (member == value_.end()) throw InputError("{}: {}: missing", origin_, path);
  return {*member, origin_, path};
}

JsonReader JsonReader::at(size_t index) const {
  return {value_.at(index), origin_, fmt::format("{}[{}]", path_, index)};
}

size_t JsonReader::size() const {
  if (!value_.is_array()) fail("an array");
  return value_.size();
}

std::vector<std::string> JsonReader::keys() const {
  if (!value_.is_object()) fail("an object");
  std::vector<std::string> names;
  for (const auto& member : value_.items()) names.push_back(member.key());
  return names;
}

std::string JsonReader::text(const std::string& key) const {
  const JsonReader member = at(key);
  if (!member.value_.is_string()) member.fail("a string");
  return member.value_.get<std::string>();
}

double JsonReader::number(const std::string& key) const {
  const JsonReader member = at(key);
  if (!member.value_.is_number()) member.fail("a number");
  return member.value_.get<double>();
}

uint64_t JsonReader::as_count(uint64_t most) const {
  if (!value_.is_number_unsigned()) fail("an integer >= 0");
  if (value_.get<uint64_t>() > most) fail(fmt::format("an integer from 0 to {}", most));
  return value_.get<uint64_t>();
}

uint64_t JsonReader::count(const std::string& key, uint64_t most) const { return at(key).as_count(most); }

uint64_t JsonReader::count(size_t index, uint64_t most) const { return at(index).as_count(most); }

uint64_t JsonReader::whole(const std::string& key) const {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  const JsonReader member = at(key);
  if (member.value_.is_number_unsigned()) return member.as_count(kMost);
  const double value = number(key);
  if (!(value >= 0 && value < static_cast<double>(kMost))) {
    member.fail(fmt::format("a number from 0 to {}", kMost));
  }
  return static_cast<uint64_t>(value);
}

std::optional<double> JsonReader::optional_number(const std::string& key) const {
  if (!has(key) || value_.at(key).is_null()) return std::nullopt;
  return number(key);
}

std::string JsonReader::optional_text(const std::string& key) const { return has(key) ? text(key) : ""; }

JsonText::JsonText(std::string_view text, std::string origin)
    : origin_(std::move(origin)), document_(std::make_unique<const json>(parse_json(text, origin_))) {}

JsonText::~JsonText() = default;

}  // namespace strait
