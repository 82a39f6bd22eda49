#include "cli/rank_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/output.h"
#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait::cli {

RankOutput::RankOutput(std::filesystem::path path, int rank) : path_(std::move(path)), rank_(rank) {
  constexpr mode_t kMode = 0600;
  // Open for writing too, so that it has no end before the process has opened it.
  if (mkfifo(path_.c_str(), kMode) != 0 ||
      (descriptor_ = open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0) {
    throw Error("{}: cannot make a pipe: {}", path_.string(), std::strerror(errno));
  }
}

RankOutput::~RankOutput() { close(descriptor_); }

// A line of an error goes where errors go.
void RankOutput::print_line(const std::string& line) const {
  const std::string text = fmt::format("[{}] {}\n", rank_, line);
  if (line.starts_with("strait: ")) {
    show(printable(text));
  } else {
    print(text);
    flush_output();
  }
}

void RankOutput::pass_on() {
  std::array<char, 4096> space;
  for (ssize_t got = 0; (got = read(descriptor_, space.data(), space.size())) > 0;) {
    pending_.append(space.data(), static_cast<size_t>(got));
  }
  for (size_t end = 0; (end = pending_.find('\n')) != std::string::npos;) {
    print_line(pending_.substr(0, end));
    pending_.erase(0, end + 1);
  }
}

void RankOutput::finish() {
  pass_on();
  if (!pending_.empty()) print_line(std::exchange(pending_, {}));
}

}  // namespace strait::cli
