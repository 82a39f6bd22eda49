#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace strait::report {

/// A place in a JSON file. Its readers throw InputError that names the file (and line, where `origin` holds
/// one), the key's path and what was expected. Holds references: the JSON outlives it.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& value, std::string origin, std::string path = "")
      : value_(value), origin_(std::move(origin)), path_(std::move(path)) {}

  bool has(const std::string& key) const;

  /// The member of an object.
  JsonReader at(const std::string& key) const;
  /// The item of an array.
  JsonReader at(size_t index) const;
  /// The number of items of an array.
  size_t size() const;
  /// The names of an object's members, sorted.
  std::vector<std::string> keys() const;

  std::string text(const std::string& key) const;
  double number(const std::string& key) const;
  uint64_t count(const std::string& key) const;

  /// Empty where the key is missing or null, which is how JSON says "not measured" and "not finite".
  std::optional<double> optional_number(const std::string& key) const;
  std::string optional_text(const std::string& key) const;

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const nlohmann::json& value_;
  std::string origin_;
  std::string path_;
};

/// Parses a text; throws InputError that says where (`origin`) it is not JSON.
nlohmann::json parse_json(std::string_view text, const std::string& origin);

}  // namespace strait::report
