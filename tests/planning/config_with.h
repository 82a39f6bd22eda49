#pragma once

#include <string>
#include <vector>

#include "strait/config/config.h"

namespace strait::test {

/// The defaults with these `key=value`.
inline Config config_with(const std::vector<std::string>& overrides) {
  return parse_config("", "empty.toml", overrides);
}

}  // namespace strait::test
