#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strait {

/// A place in a JSON file. Its readers throw InputError that names the file (and line, where `origin` holds
/// one), the key's path and what was expected. Holds references: the JSON and `origin` outlive it.
class JsonReader {
 public:
  /// The place `value`; `origin` and `path` are for messages.
  JsonReader(const nlohmann::json& value, const std::string& origin, std::string path = "")
      : value_(value), origin_(origin), path_(std::move(path)) {}
  JsonReader(const nlohmann::json& value, std::string&& origin, std::string path = "") = delete;

  /// Whether there is nothing in the place.
  bool is_null() const;

  /// Whether the place is an array.
  bool is_array() const;

  /// Whether the place is an object with that key.
  bool has(const std::string& key) const;

  /// The member of an object.
  JsonReader at(const std::string& key) const;
  /// The item of an array.
  JsonReader at(size_t index) const;
  /// The number of items of an array.
  size_t size() const;
  /// The names of an object's members, sorted.
  std::vector<std::string> keys() const;

  /// The member, a string.
  std::string text(const std::string& key) const;

  /// The member, a number.
  double number(const std::string& key) const;

  /// The member, an integer from 0 to `most`.
  uint64_t count(const std::string& key, uint64_t most = std::numeric_limits<uint64_t>::max()) const;

  /// The item, an integer from 0 to `most`.
  uint64_t count(size_t index, uint64_t most = std::numeric_limits<uint64_t>::max()) const;

  /// Empty where the key is missing or null, which is how JSON says "not measured" and "not finite".
  std::optional<double> optional_number(const std::string& key) const;

  /// The member, a string; empty where the key is missing.
  std::string optional_text(const std::string& key) const;

  /// A number of things that fits an int64_t, which another program may have written with a fraction: rounded
  /// down.
  uint64_t whole(const std::string& key) const;

  /// The same; `fallback` where the key is missing.
  uint64_t whole_or(const std::string& key, uint64_t fallback) const {
    return has(key) ? whole(key) : fallback;
  }

  /// Throws InputError: this place should hold what is `expected`.
  [[noreturn]] void fail(std::string_view expected) const;

 private:
  uint64_t as_count(uint64_t most) const;

  const nlohmann::json& value_;
  const std::string& origin_;
  std::string path_;
};

/// A text from a file, parsed; see parse_json() for what it refuses.
class JsonText {
 public:
  /// Parses the text. Throws InputError that names `origin`.
  JsonText(std::string_view text, std::string origin);
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  /// The outermost value.
  JsonReader root() const { return {*document_, origin_}; }

 private:
  std::string origin_;
  std::unique_ptr<const nlohmann::json> document_;
};

}  // namespace strait
