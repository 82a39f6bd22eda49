#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace strait::report {

/// The files that read_tables() would read of these folders, with their sizes and the times of their last
/// writing: a text that changes when they do. What cannot be read is left out.
std::string files_of(std::span<const std::filesystem::path> folders);

}  // namespace strait::report
