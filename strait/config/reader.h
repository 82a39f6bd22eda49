#pragma once

#include "strait/config/config.h"
#include "strait/formats/toml.h"

namespace strait {

/// Checks the tables against the list of keys and makes the configuration of them. Throws InputError that
/// names the origin, the key, what was expected and what was found.
Config read_config(const TomlTable& root);

}  // namespace strait
