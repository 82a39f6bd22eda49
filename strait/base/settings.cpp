#include "strait/base/settings.h"

#include "strait/base/error.h"

namespace strait {

Settings::Settings(std::span<const SettingKey> keys) {
  for (const auto& key : keys) {
    STRAIT_CHECK(key.initial.index() == key.rule.index(), "the key {} begins with a value of another type",
                 key.name);
    const bool is_new = values_.emplace(key.name, key.initial).second;
    STRAIT_CHECK(is_new, "there are two keys {}", key.name);
  }
}

const SettingValue& Settings::at(std::string_view name) const {
  const auto found = values_.find(name);
  STRAIT_CHECK(found != values_.end(), "there is no key {}", name);
  return found->second;
}

SettingValue& Settings::at(std::string_view name) {
  return const_cast<SettingValue&>(std::as_const(*this).at(name));
}

void Settings::set(std::string_view name, const SettingValue& value) {
  SettingValue& own = at(name);
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer != nullptr && std::holds_alternative<double>(own)) {
    own = static_cast<double>(*integer);
    return;
  }
  STRAIT_CHECK(own.index() == value.index(), "a value of another type is given to the key {}", name);
  own = value;
}

template <class T>
const T& Settings::get(std::string_view name) const {
  const T* value = std::get_if<T>(&at(name));
  STRAIT_CHECK(value != nullptr, "the key {} has a value of another type", name);
  return *value;
}

template const bool& Settings::get<bool>(std::string_view) const;
template const int64_t& Settings::get<int64_t>(std::string_view) const;
template const double& Settings::get<double>(std::string_view) const;
template const std::string& Settings::get<std::string>(std::string_view) const;
template const std::vector<double>& Settings::get<std::vector<double>>(std::string_view) const;

}  // namespace strait
