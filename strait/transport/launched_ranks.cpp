#include "strait/transport/launched_ranks.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/token.h"
#include "strait/transport/membership.h"
#include "strait/transport/port.h"
#include "strait/transport/tcp/meeting.h"

namespace strait {
namespace {

constexpr const char* kAddress = "127.0.0.1";
constexpr int kLookMilliseconds = 50;

bool is_past(const std::optional<Stopwatch>& watch, double seconds) {
  return watch && watch->seconds() > seconds;
}

}  // namespace

LaunchedRanks::LaunchedRanks(int processes, uint16_t port, const std::vector<std::string>& words,
                             OnRankLine on_line, Patience patience, IsReplaced is_replaced)
    : patience_(patience), is_replaced_(std::move(is_replaced)), on_line_(std::move(on_line)) {
  const std::string attempt = random_token();
  if (port == 0) port = free_port();
  folder_ = tcp::folder_of(port, attempt);
  for (int rank = 0; rank < processes; ++rank) {
    commands_.push_back(
        {.words = words,
         .output = {},
         .cores = available_cores(),
         .environment = {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", processes),
                         fmt::format("LOCAL_RANK={}", rank), fmt::format("LOCAL_WORLD_SIZE={}", processes),
                         fmt::format("MASTER_ADDR={}", kAddress), fmt::format("MASTER_PORT={}", port),
                         fmt::format("{}={}", kAttemptVariable, attempt),
                         "TORCHELASTIC_USE_AGENT_STORE=False"}});  // of a torchrun that started the launcher
    ranks_.push_back(std::make_unique<LaunchedRank>(rank, commands_.back(), on_line_));
  }
  held_.resize(ranks_.size());
}

int LaunchedRanks::wait(const std::function<bool()>& should_stop) {
  while (std::ranges::any_of(ranks_, [](const auto& rank) { return rank->runs(); })) {
    pass_on_output();
    look_at_ranks();
    if (is_replaced_) end_held_ranks();
    if (!asked_ && (should_stop() || is_past(ends_.first_failure(), patience_.grace))) ask_to_stop();
    for (const auto& rank : ranks_) {
      const bool held = ends_.first_failure() && rank->is_held();
      if (!rank->runs() || (!held && !is_over())) continue;
      rank->kill(held ? "was held by a signal" : "did not end");
      ends_.note_killed();
    }
  }
  for (const auto& rank : ranks_) rank->output().finish();
  std::error_code ignored;  // what ranks leave that were killed
  std::filesystem::remove_all(folder_, ignored);
  return ends_.status();
}

void LaunchedRanks::pass_on_output() {
  std::vector<pollfd> waits;
  for (const auto& rank : ranks_) waits.push_back({rank->output().descriptor(), POLLIN, 0});
  poll(waits.data(), waits.size(), kLookMilliseconds);
  for (const auto& rank : ranks_) rank->output().pass_on();
}

void LaunchedRanks::look_at_ranks() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const auto end = ranks_[i]->poll();
    if (!end) continue;
    if (end->signal != 0) ranks_[i]->say(text_of(*end));
    take_end(i, *end);
  }
}

void LaunchedRanks::end_held_ranks() {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i]->is_held()) {
      held_[i].reset();
    } else if (!held_[i]) {
      held_[i].emplace();
    } else if (is_past(held_[i], patience_.grace)) {
      ranks_[i]->kill("was held by a signal");
      take_end(i, {.status = 0, .signal = SIGKILL});
    }
  }
}

/// Starts a rank that has ended so again, or notes that it has ended.
void LaunchedRanks::take_end(size_t rank, const Child::End& end) {
  const auto number = static_cast<int>(rank);
  if (is_replaced_ && !asked_ && !ends_.first_end() && is_replaced_(number, end)) {
    ranks_[rank]->output().finish();
    ranks_[rank] = std::make_unique<LaunchedRank>(number, commands_[rank], on_line_);
  } else {
    ends_.note(rank, end);
  }
}

void LaunchedRanks::ask_to_stop() {
  for (const auto& rank : ranks_) rank->ask_to_stop();
  asked_.emplace();
}

/// Whether those that still run have had their time.
bool LaunchedRanks::is_over() const {
  if (ends_.first_failure()) return is_past(asked_, patience_.stop);
  return is_past(asked_, patience_.orderly_stop) && is_past(ends_.first_end(), patience_.orderly_stop);
}

}  // namespace strait
