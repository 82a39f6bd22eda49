#include "strait/codecs/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {

OperatorSpec OperatorSpec::parse(std::string_view kind, std::string_view text) {
  OperatorSpec spec;
  spec.kind_ = kind;
  spec.text_ = text;
  auto parts = split(text, ',');
  const size_t colon = parts[0].find(':');
  spec.name_ = parts[0].substr(0, colon);
  if (colon != std::string::npos) spec.argument_ = parts[0].substr(colon + 1);
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("{} \"{}\": expected option=value, not \"{}\"", kind, text, parts[i]);
    }
    auto key = parts[i].substr(0, equals);
    if (std::ranges::any_of(spec.options_, [&](const auto& option) { return option.first == key; })) {
      throw InputError("{} \"{}\": option \"{}\" is given twice", kind, text, key);
    }
    spec.options_.emplace_back(std::move(key), parts[i].substr(equals + 1));
  }
  return spec;
}

const std::string& OperatorSpec::argument(std::string_view what) {
  takes_argument_ = true;
  if (!argument_ || argument_->empty()) {
    throw InputError("{} \"{}\": expected {}:N where N is {}", kind_, text_, name_, what);
  }
  return *argument_;
}

const std::optional<std::string>& OperatorSpec::optional_argument() {
  takes_argument_ = true;
  return argument_;
}

std::string OperatorSpec::option(const std::string& key, std::string fallback) {
  known_.push_back(key);
  for (const Options& options : {options_, defaults_}) {
    const auto found = std::ranges::find(options, key, &Options::value_type::first);
    if (found != options.end()) return found->second;
  }
  return fallback;
}

void OperatorSpec::set_default(const std::string& key, std::string value) {
  defaults_.emplace_back(key, std::move(value));
}

std::string OperatorSpec::text_without(const std::vector<std::string_view>& options) const {
  std::map<std::string, std::string> values(options_.begin(), options_.end());
  values.insert(defaults_.begin(), defaults_.end());  // of keys that are not there
  for (const auto& key : options) values.erase(std::string(key));
  std::string text = argument_ ? fmt::format("{}:{}", name_, *argument_) : name_;
  for (const auto& [key, value] : values) text += fmt::format(",{}={}", key, value);
  return text;
}

int64_t OperatorSpec::integer(std::string_view value, std::string_view what, int64_t low, int64_t high) const {
  return parse_integer(value, fmt::format("{} \"{}\": {}", kind_, text_, what), low, high);
}

void OperatorSpec::reject(std::string_view what, std::string_view value, std::string_view expected) const {
  throw InputError("{} \"{}\": {} must be {}, not \"{}\"", kind_, text_, what, expected, value);
}

void OperatorSpec::finish() const {
  if (argument_ && !takes_argument_) {
    throw InputError("{} \"{}\": {} takes nothing behind a colon", kind_, text_, name_);
  }
  for (const auto& [key, value] : options_) {
    if (std::ranges::find(known_, key) == known_.end()) {
      throw InputError("{} \"{}\": {} has no option \"{}\"{}; it has: {}", kind_, text_, name_, key,
                       suggestion(key, known_), known_.empty() ? "none" : list_of(known_));
    }
  }
}

}  // namespace strait
