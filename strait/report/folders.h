#pragma once

#include <filesystem>
#include <vector>

namespace strait::report {

/// The folders in a folder by their names, links to some left out. Throws InputError where it cannot be read.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

}  // namespace strait::report
