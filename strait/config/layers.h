#pragma once

#include <filesystem>
#include <string>

#include "strait/formats/toml.h"

namespace strait {

/// Reads a file and the files it builds on: `base = "other.toml"`, relative to the file, stands under the
/// file's own tables and may have a base itself. The result has no `base`. Throws InputError.
TomlTable load_layers(const std::filesystem::path& path);

/// Sets one key: `assignment` is the `key=value` of a `--set` flag, the key dotted. Throws InputError.
void apply_override(TomlTable& root, const std::string& assignment);

}  // namespace strait
