#include "tests/support/run_files.h"

#include <algorithm>
#include <sstream>

#include "tests/support/temp_dir.h"

namespace strait::test {
namespace {

using nlohmann::json;

void erase_times(json& value) {
  if (value.is_object()) {
    for (const char* key :
         {"seconds", "samples_per_second", "tokens_per_second", "evaluation_seconds", "data_wait_seconds",
          "encode_seconds", "decode_seconds", "bubble_share", "stages", "links"}) {
      value.erase(key);
    }
  }
  if (!value.is_structured()) return;
  for (auto& item : value) erase_times(item);
}

}  // namespace

std::vector<json> metrics_of(const std::filesystem::path& run) {
  std::vector<json> lines;
  std::istringstream in(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

std::vector<json> metrics_without_times(const std::filesystem::path& run) {
  auto lines = metrics_of(run);
  std::ranges::for_each(lines, erase_times);
  return lines;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    names.push_back(item.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace strait::test
