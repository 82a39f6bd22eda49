#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "strait/base/child.h"
#include "strait/base/clock.h"

namespace strait {

/// How a process ended, for a message: `was killed by signal 9 (Killed)`, `failed with exit status 1`.
std::string text_of(const Child::End& end);

/// The exit status that a shell would give.
int status_of(const Child::End& end);

/// How the ranks of a launch have ended. The first failure counts.
class RankEnds {
 public:
  /// One has ended.
  void note(size_t rank, const Child::End& end);

  /// One had to be killed, which counts where none has failed before.
  void note_killed();

  /// The exit status of the first that failed, kDone where none has.
  int status() const { return status_; }

  /// The first that failed by itself, for a message: `rank 2 was killed by signal 9 (Killed)`.
  const std::string& failure() const { return failure_; }

  /// Since the first failed by itself; nothing: none has.
  const std::optional<Stopwatch>& first_failure() const { return first_failure_; }

  /// Since the first ended by itself, with whatever status.
  const std::optional<Stopwatch>& first_end() const { return first_end_; }

 private:
  int status_ = 0;
  std::string failure_;
  std::optional<Stopwatch> first_failure_;
  std::optional<Stopwatch> first_end_;
};

}  // namespace strait
