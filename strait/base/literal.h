#pragma once

#include <string>
#include <string_view>

namespace strait {

/// The text as a TOML string on one line, quotes included.
std::string toml_string(std::string_view text);

/// The number as TOML: the shortest text that reads back as the same value.
std::string toml_number(double number);

}  // namespace strait
