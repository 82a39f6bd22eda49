#include "strait/models/published.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

using nlohmann::json;

bool is_same(const json& found, const SettingValue& expected) {
  return std::visit(
      [&](const auto& value) {
        // A number compares with a number of any type, but not with a truth value.
        return found.is_boolean() == std::is_same_v<decltype(value), const bool&> && found == json(value);
      },
      expected);
}

/// As a value of the type of `like`, where it is one.
std::optional<SettingValue> value_of(const json& found, const SettingValue& like) {
  if (std::holds_alternative<bool>(like) && found.is_boolean()) return found.get<bool>();
  const bool is_huge = found.is_number_unsigned() && !std::in_range<int64_t>(found.get<uint64_t>());
  if (std::holds_alternative<int64_t>(like) && found.is_number_integer() && !is_huge)
    return found.get<int64_t>();
  if (std::holds_alternative<double>(like) && found.is_number()) return found.get<double>();
  if (std::holds_alternative<std::string>(like) && found.is_string()) return found.get<std::string>();
  return std::nullopt;
}

/// What the rule has against the value, which is of its type.
std::string complaint_of(const SettingRule& rule, const SettingValue& value) {
  return std::visit([&]<class T>(const Rule<T>& of_type) { return of_type(std::get<T>(value)); }, rule);
}

}  // namespace

PublishedConfig::PublishedConfig(const json& root, std::string name, std::span<const SettingKey> keys)
    : root_(root), name_(std::move(name)), keys_(keys) {
  if (!root.is_object()) throw InputError("{}: is a JSON {}, expected an object", name_, root.type_name());
}

const json& PublishedConfig::at(std::string_view place) const {
  static const json kNothing;
  const json::json_pointer pointer("/" + std::string(place));
  return root_.contains(pointer) ? root_.at(pointer) : kNothing;
}

const SettingKey& PublishedConfig::key(std::string_view name) const {
  const auto found = std::ranges::find(keys_, name, &SettingKey::name);
  STRAIT_CHECK(found != keys_.end(), "no key {}", name);
  return *found;
}

void PublishedConfig::fail(std::string_view place, std::string_view expected) const {
  throw InputError("{}: {} is {}, {}", name_, place, shortened(at(place).dump()), expected);
}

void PublishedConfig::fail(std::string_view place, const SettingRule& rule) const {
  fail(place, "expected " + std::visit([](const auto& of_type) { return of_type.expected; }, rule));
}

void PublishedConfig::expect(std::string_view place, std::initializer_list<SettingValue> values) const {
  const json& found = at(place);
  if (found.is_null()) return;
  if (std::ranges::any_of(values, [&](const auto& value) { return is_same(found, value); })) return;
  std::vector<std::string> texts;
  for (const auto& value : values) texts.push_back(to_json_text(value));
  fail(place, fmt::format("expected {} for the network that model describes", either_of(texts)));
}

bool PublishedConfig::has(std::string_view place) const { return !at(place).is_null(); }

bool PublishedConfig::mentions(std::string_view place) const {
  return root_.contains(json::json_pointer("/" + std::string(place)));
}

bool PublishedConfig::has_members(std::string_view place) const {
  if (has(place) && !at(place).is_object()) fail(place, "expected an object");
  return !at(place).empty();
}

std::optional<std::string> PublishedConfig::text(std::string_view place) const {
  const json& found = at(place);
  if (found.is_null()) return std::nullopt;
  if (!found.is_string()) fail(place, "expected a string");
  return found.get<std::string>();
}

std::optional<bool> PublishedConfig::flag(std::string_view place) const {
  const json& found = at(place);
  if (found.is_null()) return std::nullopt;
  if (!found.is_boolean()) fail(place, "expected true or false");
  return found.get<bool>();
}

void PublishedConfig::take(std::string_view place, std::string_view name, Decides decides) {
  const json& found = at(place);
  if (found.is_null()) return;
  const auto& [own, initial, rule, meaning, is_place] = key(name);
  const auto value = value_of(found, initial);
  if (!value) fail(place, rule);
  if (const auto complaint = complaint_of(rule, *value); !complaint.empty())
    throw InputError("{}: {}: {}", name_, place, complaint);
  take(place, name, *value, decides);
}

void PublishedConfig::take_needed(std::string_view place, std::string_view name) {
  if (!has(place)) fail(place, key(name).rule);
  take(place, name);
}

void PublishedConfig::take(std::string_view place, std::string_view name, SettingValue value, Decides decides) {
  STRAIT_CHECK(key(name).initial.index() == value.index(), "a value of another type for {}", name);
  if (decides != Decides::at_most) std::erase_if(settings_, [&](const auto& said) { return said.key == name; });
  settings_.push_back({std::string(name), std::move(value), std::string(place), decides});
}

std::string to_json_text(const SettingValue& value) {
  return std::visit([](const auto& of_type) { return json(of_type).dump(); }, value);
}

}  // namespace strait
