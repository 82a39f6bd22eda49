#include "strait/transport/launched_ranks.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/exit_status.h"
#include "strait/base/token.h"
#include "strait/transport/membership.h"

namespace strait {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr int kLookMilliseconds = 50;
constexpr int kSignalled = 128;  // as shells count them

bool is_past(const std::optional<Stopwatch>& watch, double seconds) {
  return watch && watch->seconds() > seconds;
}

std::unique_ptr<StoreServer> serve(uint16_t port, int ranks, const std::string& attempt) {
  try {
    return std::make_unique<StoreServer>(kAddress, port, ranks, attempt);
  } catch (const Error& error) {
    throw Error("launch: cannot listen at {}:{}: {}", kAddress, port, error.what());
  }
}

}  // namespace

LaunchedRanks::LaunchedRanks(int processes, uint16_t port, const std::vector<std::string>& words,
                             OnRankLine on_line, Patience patience)
    : on_line_(std::move(on_line)), patience_(patience), running_(static_cast<size_t>(processes)) {
  const std::string attempt = random_token();
  store_ = serve(port, processes, attempt);
  for (int rank = 0; rank < processes; ++rank) {
    auto& output = *outputs_.emplace_back(std::make_unique<RankOutput>(rank, on_line_));
    const Child::Command command{
        .words = words,
        .output = output.path(),
        .cores = available_cores(),
        .environment = {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", processes),
                        fmt::format("LOCAL_RANK={}", rank), fmt::format("LOCAL_WORLD_SIZE={}", processes),
                        fmt::format("MASTER_ADDR={}", kAddress), fmt::format("MASTER_PORT={}", store_->port()),
                        fmt::format("{}={}", kAttemptVariable, attempt),
                        fmt::format("{}=1", kLaunchedVariable)}};
    children_.push_back(std::make_unique<Child>(command));
  }
}

int LaunchedRanks::wait(const std::function<bool()>& should_stop) {
  while (running_ > 0) {
    pass_on_output();
    look_at_children();
    if (!asked_ && (should_stop() || is_past(first_failure_, patience_.grace))) ask_to_stop();
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      if (!children_[rank]) continue;
      if (first_failure_ && children_[rank]->is_held())
        kill_rank(rank, "was held by a signal");
      else if (is_over())
        kill_rank(rank, "did not end");
    }
  }
  for (const auto& output : outputs_) output->finish();
  return status_;
}

void LaunchedRanks::pass_on_output() {
  std::vector<pollfd> waits;
  for (const auto& output : outputs_) waits.push_back({output->descriptor(), POLLIN, 0});
  poll(waits.data(), waits.size(), kLookMilliseconds);
  for (const auto& output : outputs_) output->pass_on();
}

void LaunchedRanks::look_at_children() {
  for (size_t rank = 0; rank < children_.size(); ++rank) {
    if (!children_[rank]) continue;
    if (const auto end = children_[rank]->poll()) note_end(rank, *end);
  }
}

void LaunchedRanks::note_end(size_t rank, const Child::End& end) {
  children_[rank].reset();
  --running_;
  if (!first_end_) first_end_.emplace();
  std::string what = fmt::format("failed with exit status {}", end.status);
  if (end.signal != 0) {
    what = fmt::format("was killed by signal {} ({})", end.signal, strsignal(end.signal));
    outputs_[rank]->finish();
    on_line_(static_cast<int>(rank), fmt::format("strait: {}", what));
  }
  const int status = end.signal != 0 ? kSignalled + end.signal : end.status;
  if (status == kDone || status_ != kDone) return;
  status_ = status;
  failure_ = fmt::format("rank {} {}", rank, what);
  first_failure_.emplace();
}

void LaunchedRanks::ask_to_stop() {
  for (const auto& child : children_) {
    if (child) child->ask_to_stop();
  }
  asked_.emplace();
}

/// Whether those that still run have had their time.
bool LaunchedRanks::is_over() const {
  if (first_failure_) return is_past(asked_, patience_.stop);
  return is_past(asked_, patience_.orderly_stop) && is_past(first_end_, patience_.orderly_stop);
}

void LaunchedRanks::kill_rank(size_t rank, const char* reason) {
  children_[rank].reset();
  --running_;
  outputs_[rank]->finish();
  on_line_(static_cast<int>(rank), fmt::format("strait: {} and was killed", reason));
  if (status_ == kDone) status_ = kSignalled + SIGKILL;
}

}  // namespace strait
