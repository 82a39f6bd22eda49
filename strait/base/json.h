#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "strait/base/error.h"

namespace strait {

/// How deep arrays and objects may nest in JSON from outside. Copying, comparing and writing a document
/// recurse, so that one that nests deeper could exhaust the stack.
inline constexpr size_t kJsonLevelsMost = 100;

/// Parses a whole text. Throws a Refusal that begins with `name` (a file's, or what a peer has sent) when the
/// text is not JSON, nests too deep, has a number that no double holds or an object with a key twice, of
/// which other programs take the last without a word.
template <class Refusal = InputError>
nlohmann::json parse_json(std::string_view text, std::string_view name);

/// The text as a JSON string in its quotation marks; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace strait
