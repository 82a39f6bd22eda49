#include "strait/transport/launched_rank.h"

#include <fmt/format.h>

#include <utility>

namespace strait {

LaunchedRank::LaunchedRank(int rank, Child::Command command, OnRankLine on_line)
    : rank_(rank), on_line_(on_line), output_(rank, std::move(on_line)) {
  command.output = output_.path();
  child_ = std::make_unique<Child>(command);
}

std::optional<Child::End> LaunchedRank::poll() {
  const auto end = child_ ? child_->poll() : std::nullopt;
  if (end) child_.reset();
  return end;
}

void LaunchedRank::ask_to_stop() {
  if (child_) child_->ask_to_stop();
}

void LaunchedRank::kill(const char* reason) {
  child_.reset();
  say(fmt::format("{} and was killed", reason));
}

void LaunchedRank::say(const std::string& line) {
  output_.finish();
  on_line_(rank_, fmt::format("strait: rank {} {}", rank_, line));
}

}  // namespace strait
