#pragma once

#include <string>
#include <string_view>

namespace strait::cli {

/// Writes to standard output. A reader that has gone (`strait ... | head`) is no error; anything else that
/// keeps the text from being written throws Error.
void print(std::string_view text);

/// Writes what print() still holds, under the same rules.
void flush_output();

/// A span of time as `0:07` or `1:02:03`.
std::string clock_time(double seconds);

}  // namespace strait::cli
