#pragma once

#include <filesystem>
#include <string_view>

namespace strait::cli {

/// For the file that a flag names, before the work whose result goes there: throws InputError that names the
/// flag and the file where that could not be written, or is no file; DiskError where a disk is full or fails.
/// What the file holds stays as it is.
void check_output_file(std::string_view flag, const std::filesystem::path& path);

/// Throws InputError where a flag names, for what is to be written, the file that is read, under whatever name.
void check_not_input(std::string_view flag, const std::filesystem::path& path,
                     const std::filesystem::path& input);

}  // namespace strait::cli
