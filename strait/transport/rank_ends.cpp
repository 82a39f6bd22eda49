#include "strait/transport/rank_ends.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "strait/base/exit_status.h"

namespace strait {
namespace {

constexpr int kSignalled = 128;  // as shells count them

}  // namespace

std::string RankEnds::note(size_t rank, const Child::End& end) {
  if (!first_end_) first_end_.emplace();
  const bool signalled = end.signal != 0;
  std::string how = signalled ? fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal))
                              : fmt::format("failed with exit status {}", end.status);
  const int status = signalled ? kSignalled + end.signal : end.status;
  if (status != kDone && status_ == kDone) {
    status_ = status;
    failure_ = fmt::format("rank {} {}", rank, how);
    first_failure_.emplace();
  }
  return how;
}

void RankEnds::note_killed() {
  if (status_ == kDone) status_ = kSignalled + SIGKILL;
}

}  // namespace strait
