#include "strait/experiment/launch_mark.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

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
  std::ifstream file(folder / kFile);
  const std::string mark(std::istreambuf_iterator<char>(file), {});
  return !mark.empty() && mark == own_launch();
}

}  // namespace strait
