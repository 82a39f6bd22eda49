#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strait {

/// The text split at every `separator`; an empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// ` (did you mean "NAME"?)` with the candidate nearest to `word` by edit distance, or an empty string
/// when none is near. For the end of an error message about a misspelt name.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The names as `a, b, c`.
std::string list_of(std::span<const std::string> names);

/// A whole decimal integer within [low, high]; throws InputError that names `what` otherwise.
int64_t parse_integer(std::string_view text, std::string_view what, int64_t low, int64_t high);

}  // namespace strait
