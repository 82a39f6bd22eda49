#pragma once

#include <memory>
#include <optional>

#include "strait/base/child.h"
#include "strait/transport/rank_output.h"

namespace strait {

/// A process that was launched as a rank, and what it prints.
class LaunchedRank {
 public:
  /// Starts it; its output is what `command` is to write to. Throws Error.
  LaunchedRank(int rank, Child::Command command, OnRankLine on_line);

  /// Whether it has not ended yet.
  bool runs() const { return child_ != nullptr; }

  /// How it has ended, once.
  std::optional<Child::End> poll();

  /// Whether a signal holds it.
  bool is_held() const { return child_ && child_->is_held(); }

  /// Asks it to stop where it runs.
  void ask_to_stop();

  /// Ends it at once where it runs, and says the reason on a line of its own.
  void kill(const char* reason);

  /// Passes on what it has printed.
  RankOutput& output() { return output_; }

  /// Passes on the rest of what it has printed, then a line that begins with `strait: `.
  void say(const std::string& line);

 private:
  int rank_;
  OnRankLine on_line_;
  RankOutput output_;
  std::unique_ptr<Child> child_;  ///< null: it has ended
};

}  // namespace strait
