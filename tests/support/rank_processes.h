#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace strait::test {

/// Processes that train together on this machine, each started by itself with the variables that torchrun sets.
class RankProcesses {
 public:
  /// They meet at the port of the loopback interface.
  RankProcesses(std::string program, int count, uint16_t port);

  /// Starts a rank; `variables` go on top of those.
  Process& start(int rank, const std::vector<std::string>& arguments,
                 const std::vector<std::string>& variables = {});

  /// Starts a rank again, whose process has ended.
  void replace(int rank, const std::vector<std::string>& arguments);
  void start_all(const std::vector<std::string>& arguments);

  /// One that was started.
  Process& at(int rank) { return processes_.at(rank); }
  bool have_all_ended();

  /// Waits for all that were started and gives how each ended, by rank. Who still runs after the limit is
  /// killed.
  std::map<int, ProcessResult> wait(std::chrono::milliseconds limit);

  /// The variables of a rank.
  std::vector<std::string> variables(int rank) const;

 private:
  std::string program_;
  int count_;
  uint16_t port_;
  std::map<int, Process> processes_;
};

}  // namespace strait::test
