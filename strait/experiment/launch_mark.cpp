#include "strait/experiment/launch_mark.h"

#include <cstdlib>
#include <string>
#include <system_error>

#include "strait/base/files.h"

namespace strait {
namespace {

constexpr const char* kFile = ".launch";

std::string own_launch() {
  const char* word = std::getenv(kLaunchVariable);
  return word == nullptr ? "" : word;
}

}  // namespace

void mark_launch(const std::filesystem::path& folder) {
  if (!own_launch().empty()) replace_file(folder / kFile, own_launch());
}

bool has_mark_of_launch(const std::filesystem::path& folder) {
  const std::string own = own_launch();
  const auto file = folder / kFile;
  std::error_code error;
  return !own.empty() && std::filesystem::is_regular_file(file, error) &&
         std::filesystem::file_size(file, error) == own.size() && read_whole(file) == own;
}

}  // namespace strait
