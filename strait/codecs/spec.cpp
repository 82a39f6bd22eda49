#include "strait/codecs/spec.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {

CodecSpec CodecSpec::parse(std::string_view text) {
  CodecSpec spec;
  spec.text_ = text;
  auto parts = split(text, ',');
  const size_t colon = parts[0].find(':');
  spec.name_ = parts[0].substr(0, colon);
  if (colon != std::string::npos) spec.argument_ = parts[0].substr(colon + 1);
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError("codec \"{}\": expected option=value, not \"{}\"", text, parts[i]);
    }
    auto key = parts[i].substr(0, equals);
    if (std::ranges::any_of(spec.options_, [&](const auto& option) { return option.first == key; })) {
      throw InputError("codec \"{}\": option \"{}\" is given twice", text, key);
    }
    spec.options_.emplace_back(std::move(key), parts[i].substr(equals + 1));
  }
  return spec;
}

const std::string& CodecSpec::argument(std::string_view what) const {
  if (!argument_ || argument_->empty()) {
    throw InputError("codec \"{}\": expected {}:N where N is {}", text_, name_, what);
  }
  return *argument_;
}

void CodecSpec::no_argument() const {
  if (argument_) throw InputError("codec \"{}\": {} takes nothing behind a colon", text_, name_);
}

std::string CodecSpec::option(const std::string& key, std::string fallback) {
  known_.push_back(key);
  const auto found = std::ranges::find(options_, key, &std::pair<std::string, std::string>::first);
  return found == options_.end() ? std::move(fallback) : found->second;
}

void CodecSpec::reject(std::string_view what, std::string_view value, std::string_view expected) const {
  throw InputError("codec \"{}\": {} must be {}, not \"{}\"", text_, what, expected, value);
}

void CodecSpec::finish() const {
  for (const auto& [key, value] : options_) {
    if (std::ranges::find(known_, key) == known_.end()) {
      throw InputError("codec \"{}\": {} has no option \"{}\"{}; it has: {}", text_, name_, key,
                       suggestion(key, known_), known_.empty() ? "none" : list_of(known_));
    }
  }
}

}  // namespace strait
