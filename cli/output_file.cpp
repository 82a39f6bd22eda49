#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "strait/base/error.h"
#include "strait/base/files.h"

namespace strait::cli {

namespace fs = std::filesystem;

void check_output_file(std::string_view flag, const fs::path& path) {
  if (path.empty()) throw InputError("{}: expected the name of a file, found none", flag);
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw InputError("{}: {}: expected the name of a file, found {}", flag, path.string(),
                     fs::is_directory(path, ignored) ? "a folder" : "a device, a pipe or a socket");
  }
  const auto [probe, file] = make_beside(path);  // as replace_file() does it
  const int reason = errno;
  if (file < 0) {
    fail_to_write<InputError>(
        reason, fmt::format("{}: {}: cannot be written: {}", flag, path.string(), std::strerror(reason)));
  }
  ::close(file);
  ::unlink(probe.c_str());
}

void check_not_input(std::string_view flag, const fs::path& path, const fs::path& input) {
  std::error_code ignored;
  if (path.lexically_normal() != input.lexically_normal() && !fs::equivalent(path, input, ignored)) return;
  throw InputError("{}: {}: expected another file than the one that is read", flag, path.string());
}

}  // namespace strait::cli
