#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "strait/base/rule.h"

namespace strait {

/// What a key of a configuration can hold.
using SettingValue = std::variant<bool, int64_t, double, std::string, std::vector<double>>;

/// What a value of each type must fulfil.
using SettingRule =
    std::variant<Rule<bool>, Rule<int64_t>, Rule<double>, Rule<std::string>, Rule<std::vector<double>>>;

/// A key that one kind of thing (a network, a data set) has: of `model.heads` the name is `heads`.
struct SettingKey {
  std::string name;       ///< without the table
  SettingValue initial;   ///< where nothing sets it; of the rule's type
  SettingRule rule;       ///< what a value must fulfil
  std::string meaning;    ///< for people
  bool is_place = false;  ///< says where a file lies, and nothing about what is in it
};

/// The values of a kind's keys.
class Settings {
 public:
  Settings() = default;  ///< of no key

  /// The keys' initial values.
  explicit Settings(std::span<const SettingKey> keys);

  // The value of that name; InternalError where there is none of the type.
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }  ///< the integer of that name
  double number(std::string_view name) const { return get<double>(name); }     ///< the number of that name
  bool flag(std::string_view name) const { return get<bool>(name); }           ///< the truth value of that name

  /// The text of that name.
  const std::string& text(std::string_view name) const { return get<std::string>(name); }

  /// The numbers of that name.
  const std::vector<double>& numbers(std::string_view name) const { return get<std::vector<double>>(name); }

  /// Whether there is such a key.
  bool has(std::string_view name) const { return values_.contains(name); }

  /// The value itself; InternalError where there is none.
  SettingValue& at(std::string_view name);

  /// The same, to read.
  const SettingValue& at(std::string_view name) const;

  /// Replaces a value by one of the same type, or a number by an integer. Whether it fulfils the key's rule is
  /// not asked.
  void set(std::string_view name, const SettingValue& value);

  bool operator==(const Settings&) const = default;

 private:
  template <class T>
  const T& get(std::string_view name) const;

  std::map<std::string, SettingValue, std::less<>> values_;
};

/// Settings that differ from the initial ones, for a program: `{{"width", 64}, {"init", "a.safetensors"}}`.
using SettingList = std::vector<std::pair<std::string, SettingValue>>;

/// Calls visit(name, value, rule, meaning) for each key, with the value of its own type; `settings` is Settings
/// or const Settings.
template <class S, class Visitor>
void visit_settings(std::span<const SettingKey> keys, S& settings, const Visitor& visit) {
  for (const auto& key : keys) {
    std::visit(
        [&]<class T>(const Rule<T>& rule) {
          visit(key.name, std::get<T>(settings.at(key.name)), rule, key.meaning);
        },
        key.rule);
  }
}

}  // namespace strait
