#pragma once

#include <string>
#include <vector>

#include "strait/config/config.h"

namespace strait {

/// A kind that a configuration can have: the table whose keys depend on it, the setting that chooses it, such
/// as `model.kind = "gpt2"`, and an otherwise initial configuration with it, without set_defaults_of_kinds().
struct KindChoice {
  std::string table;    ///< such as `model`
  std::string setting;  ///< as a line of TOML
  Config config;        ///< with that kind
};

/// One for every set of keys that a table can have.
std::vector<KindChoice> all_kinds();

}  // namespace strait
