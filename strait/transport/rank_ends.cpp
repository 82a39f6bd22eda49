#include "strait/transport/rank_ends.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "strait/base/exit_status.h"

namespace strait {
namespace {

constexpr int kSignalled = 128;  // as shells count them

}  // namespace

std::string text_of(const Child::End& end) {
  return end.signal != 0 ? fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal))
                         : fmt::format("failed with exit status {}", end.status);
}

int status_of(const Child::End& end) { return end.signal != 0 ? kSignalled + end.signal : end.status; }

void RankEnds::note(size_t rank, const Child::End& end) {
  if (!first_end_) first_end_.emplace();
  if (status_of(end) == kDone || status_ != kDone) return;
  status_ = status_of(end);
  failure_ = fmt::format("rank {} {}", rank, text_of(end));
  first_failure_.emplace();
}

void RankEnds::note_killed() {
  if (status_ == kDone) status_ = kSignalled + SIGKILL;
}

}  // namespace strait
