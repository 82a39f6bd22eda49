#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strait {

/// The text in Unicode's normal form C: characters and the marks behind them become one character where there
/// is one. Malformed bytes stay as they are, and the text on either side is composed alone.
std::string composed(std::string_view text);

/// How many bytes at the beginning of `text` are white space, by Unicode's property White_Space.
size_t leading_space(std::string_view text);

}  // namespace strait
