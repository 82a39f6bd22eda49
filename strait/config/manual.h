#pragma once

#include <string>

#include "strait/config/config.h"

namespace strait {

/// Every key of the list with its default, as TOML with a comment that says what the key means, what it may be
/// and how kinds change its default. A key that the default kinds do not have is commented out, with the
/// setting that it needs. parse_config() of it gives the defaults.
std::string manual_of_defaults();

/// The keys of a configuration with their values, likewise, and the default where the value is another one.
/// parse_config() of it gives an equal Config.
std::string manual_of(const Config& config);

}  // namespace strait
