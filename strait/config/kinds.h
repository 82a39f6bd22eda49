#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strait/config/config.h"

namespace strait {

/// A kind that a configuration can have: the table whose keys depend on it, its name, and an otherwise initial
/// configuration with it.
struct KindChoice {
  std::string table;  ///< as keys begin, with the dot
  std::string kind;   ///< its name
  Config config;      ///< with that kind and its defaults
};

/// One for every kind of which a table's keys or their defaults depend.
std::vector<KindChoice> all_kinds();

/// How the kinds of a table are chosen, such as: model.kind = "gpt2" or "llama".
std::string setting_of(std::string_view table, std::span<const std::string> kinds);

/// The names in quotation marks, such as: "a", "b" or "c".
std::string alternatives(std::span<const std::string> names);

}  // namespace strait
