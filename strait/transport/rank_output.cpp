#include "strait/transport/rank_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "strait/base/error.h"

namespace strait {

RankOutput::RankOutput(int rank, OnRankLine on_line) : rank_(rank), on_line_(std::move(on_line)) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: {}", std::strerror(errno));
  read_end_ = Socket(ends[0]);
  write_end_ = Socket(ends[1]);
  if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) throw Error("cannot read a pipe: {}", std::strerror(errno));
}

std::filesystem::path RankOutput::path() const {
  return fmt::format("/proc/self/fd/{}", write_end_.descriptor());
}

void RankOutput::pass_on() {
  std::array<char, 4096> space;
  for (ssize_t got = 0; (got = read(read_end_.descriptor(), space.data(), space.size())) > 0;) {
    pending_.append(space.data(), static_cast<size_t>(got));
  }
  for (size_t end = 0; (end = pending_.find('\n')) != std::string::npos;) {
    on_line_(rank_, pending_.substr(0, end));
    pending_.erase(0, end + 1);
  }
}

void RankOutput::finish() {
  pass_on();
  if (!pending_.empty()) on_line_(rank_, std::exchange(pending_, {}));
}

}  // namespace strait
