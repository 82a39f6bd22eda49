#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace strait {

/// Writes the parts one after another to a file beside `path`, makes them last on the disk and then gives
/// the file the name `path` in one step: a crash leaves the old content or the new. Throws Error that names
/// the file, and leaves nothing behind, when it cannot be written.
void replace_file(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);

void replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace strait
