#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace strait::test {

/// The lines of a run's metrics.jsonl.
std::vector<nlohmann::json> metrics_of(const std::filesystem::path& run);

/// The same without what depends on the clock.
std::vector<nlohmann::json> metrics_without_times(const std::filesystem::path& run);

/// The names in a folder, sorted; none where it does not exist.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace strait::test
