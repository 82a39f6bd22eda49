#pragma once

#include <filesystem>

namespace strait {

/// What `strait launch` sets for all its processes, those that it starts again among them: a word that nobody
/// else has.
inline constexpr const char* kLaunchVariable = "STRAIT_LAUNCH";

/// Notes in a run's folder which launch trains there, if one does. Throws Error where it cannot be written.
void mark_launch(const std::filesystem::path& folder);

/// Whether this process's launch has trained there already.
bool has_mark_of_launch(const std::filesystem::path& folder);

}  // namespace strait
