#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/base/clock.h"
#include "strait/base/stop_signal.h"
#include "strait/transport/launched_rank.h"
#include "strait/transport/rank_ends.h"

namespace strait {

/// How many seconds LaunchedRanks gives.
struct Patience {
  double grace = 5;          ///< to end by themselves when another has failed; held by a signal, to go on
  double stop = 5;           ///< then, when asked to
  double orderly_stop = 10;  ///< when all were asked to and another has done so
};

/// Whether the rank whose process has ended so is started again in its place, while the others go on.
using IsReplaced = std::function<bool(int rank, const Child::End& end)>;

/// Processes of this machine that train together.
class LaunchedRanks {
 public:
  /// Starts them with these words as the command line: the program's path, then its arguments. Each finds its
  /// place in the variables that membership_of_process() reads. `on_line` gets what they print, and a line that
  /// begins with `strait: ` when one is killed. Port 0: any free one. `is_replaced`, where there is one, is
  /// asked of each that ends before any other has, and before all were asked to stop; one that a signal holds
  /// for the grace is killed then.
  LaunchedRanks(int processes, uint16_t port, const std::vector<std::string>& words, OnRankLine on_line,
                Patience patience = Patience(), IsReplaced is_replaced = {});

  /// Passes on what they print, and a request to stop, until all have ended. Kills those that do not, when
  /// others have failed or were asked to stop and did. Gives the exit status of the first that failed.
  int wait(const std::function<bool()>& should_stop = stop_requested);

  /// The first that failed, for a message: `rank 2 was killed by signal 9 (Killed)`.
  const std::string& failure() const { return ends_.failure(); }

 private:
  void pass_on_output();
  void look_at_ranks();
  void end_held_ranks();
  void take_end(size_t rank, const Child::End& end);
  void ask_to_stop();
  bool is_over() const;

  Patience patience_;
  IsReplaced is_replaced_;
  OnRankLine on_line_;
  std::vector<Child::Command> commands_;        ///< a rank's
  std::vector<std::optional<Stopwatch>> held_;  ///< since a signal holds a rank
  std::string folder_;                          ///< in which they meet
  std::vector<std::unique_ptr<LaunchedRank>> ranks_;
  RankEnds ends_;
  std::optional<Stopwatch> asked_;  ///< since they were asked to stop
};

}  // namespace strait
