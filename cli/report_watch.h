#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace strait::cli {

/// Serves the report of the folders at http://127.0.0.1:PORT/ until a signal comes, and makes it anew when
/// their files change; port 0 is any free one. While the files cannot be read, as when somebody edits them, the
/// last page stays and says so. Returns the exit status. Throws InputError when the folders hold no runs or the
/// port cannot be had.
int watch_report(const std::vector<std::filesystem::path>& folders, const std::string& title, uint16_t port);

}  // namespace strait::cli
