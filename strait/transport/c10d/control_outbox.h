#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "strait/transport/control.h"

namespace strait {

/// A message that is to go to a rank.
struct ControlLetter {
  int to;
  ControlMessage message;
  bool confirmed;  ///< somebody waits until the rank has taken it in
};

/// What one thread puts in for another to send, and waits for to be confirmed.
class ControlOutbox {
 public:
  void put(const std::vector<int>& peers, const ControlMessage& message, bool confirmed);

  /// Whom a wait has ended without, and why.
  struct Missing {
    std::vector<int> ranks;
    std::string reason;  ///< empty: they took too long
  };

  /// Waits until everything that was put in to be confirmed is.
  Missing wait(std::chrono::milliseconds limit);

  // The other thread's.

  /// What was put in since the last call.
  std::vector<ControlLetter> take();

  /// The rank has taken in what was sent to it.
  void confirm(int rank);

  /// No more is to be expected, for a reason that is not empty.
  void fail(const std::string& reason);

  /// Whether somebody waits for a confirmation.
  bool is_awaited() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ControlLetter> letters_;
  std::vector<int> unheard_;  ///< ranks that have not confirmed yet
  std::string failure_;
};

}  // namespace strait
