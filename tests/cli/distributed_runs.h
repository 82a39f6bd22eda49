#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "strait/transport/port.h"
#include "tests/cli/tiny_runs.h"
#include "tests/support/rank_processes.h"

namespace strait::test {

/// Runs of four processes, one per stage.
class DistributedRuns : public TinyRuns {
 protected:
  static constexpr int kRanks = 4;
  static constexpr std::chrono::seconds kLimit{40};  ///< for what hangs: nobody here comes near it

  RankProcesses ranks() const { return {STRAIT_PROGRAM, kRanks, free_port()}; }

  RankProcesses start(const std::string& out, const std::vector<std::string>& flags = {}) const {
    RankProcesses all = ranks();
    all.start_all(arguments(out, flags));
    return all;
  }

  /// Waits for all; each must end with the status.
  std::map<int, ProcessResult> expect_all(RankProcesses& all, int status) const {
    auto results = all.wait(kLimit);
    for (const auto& [rank, result] : results)
      EXPECT_EQ(result.status, status) << "rank " << rank << ": " << result.err;
    return results;
  }

  std::map<int, ProcessResult> train_with_ranks(const std::string& out,
                                                const std::vector<std::string>& flags = {}) const {
    RankProcesses all = start(out, flags);
    return expect_all(all, 0);
  }

  std::vector<std::string> launch_arguments(const std::string& out,
                                            const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> all = {"launch", "-n", std::to_string(kRanks), "--"};
    const auto train = arguments(out, flags);
    all.insert(all.end(), train.begin(), train.end());
    return all;
  }

  /// With flags of `launch` itself.
  std::vector<std::string> launch(const std::vector<std::string>& own, const std::string& out,
                                  const std::vector<std::string>& flags = {}) const {
    auto words = launch_arguments(out, flags);
    words.insert(words.begin() + 1, own.begin(), own.end());
    return words;
  }
};

}  // namespace strait::test
