#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/settings.h"

namespace strait {

/// How far a file decides on a key.
enum class Decides : uint8_t {
  exactly,  ///< with another value the weights would be another network's
  at_most,  ///< the same with a greater one
  nothing   ///< any value is one of theirs
};

/// What a file says of a key.
struct PublishedSetting {
  std::string key;                     ///< of the kind, without the table
  SettingValue value;                  ///< of the key's type
  std::string place;                   ///< where in the file, such as `rope_scaling/factor`
  Decides decides = Decides::nothing;  ///< on the key
};

/// A config.json as Hugging Face leaves one beside weights, while a kind reads it. Places are members of the
/// file, with a `/` before one of a member; a place that is missing, or null, says nothing. Functions throw
/// InputError that names the file and the place.
class PublishedConfig {
 public:
  /// Of a kind with these keys. `root` must outlive the object; `name` is the file's, for messages. Refuses a
  /// root that is no object.
  PublishedConfig(const nlohmann::json& root, std::string name, std::span<const SettingKey> keys);

  /// Refuses the file where it has another value there.
  void expect(std::string_view place, std::initializer_list<SettingValue> values) const;

  /// The text there.
  std::optional<std::string> text(std::string_view place) const;

  /// The truth value there.
  std::optional<bool> flag(std::string_view place) const;

  /// Whether there is a value.
  bool has(std::string_view place) const;

  /// Whether the file has the member, if only as null: transformers takes its own initial value where it has
  /// not.
  bool mentions(std::string_view place) const;

  /// Whether there is an object that has members. Refuses the file where what is there is no object.
  bool has_members(std::string_view place) const;

  /// Takes the value there for a key, on which the file decides so. What was taken for the key before, but for
  /// what it is at most, does not count any more.
  void take(std::string_view place, std::string_view key, Decides decides = Decides::exactly);

  /// Takes the value there, on which the file decides exactly, and refuses a file that has none.
  void take_needed(std::string_view place, std::string_view key);

  /// Takes a value for a key that follows from what is there, likewise.
  void take(std::string_view place, std::string_view key, SettingValue value, Decides decides);

  /// What was taken, in that order.
  const std::vector<PublishedSetting>& settings() const { return settings_; }

 private:
  const nlohmann::json& at(std::string_view place) const;
  const SettingKey& key(std::string_view name) const;
  [[noreturn]] void fail(std::string_view place, std::string_view expected) const;
  [[noreturn]] void fail(std::string_view place, const SettingRule& rule) const;

  const nlohmann::json& root_;
  std::string name_;
  std::span<const SettingKey> keys_;
  std::vector<PublishedSetting> settings_;
};

/// The value as it stands in JSON.
std::string to_json_text(const SettingValue& value);

}  // namespace strait
