#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {

/// The names of a list of kinds, in its order.
template <class Kind>
std::vector<std::string> names_of(const std::vector<Kind>& kinds) {
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const Kind& kind : kinds) names.push_back(kind.name);
  return names;
}

/// The kind of that name. Throws InputError that begins with `what`, the key that chooses it, and lists the
/// names.
template <class Kind>
const Kind& find_kind(const std::vector<Kind>& kinds, std::string_view name, std::string_view what) {
  for (const Kind& kind : kinds) {
    if (kind.name == name) return kind;
  }
  const auto names = names_of(kinds);
  throw InputError("{} is \"{}\", expected one of {}{}", what, name, list_of(names), suggestion(name, names));
}

}  // namespace strait
