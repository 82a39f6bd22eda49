#include "cli/outcome.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "strait/base/exit_status.h"
#include "strait/base/units.h"

namespace strait::cli {

namespace {

/// The last epoch's scores; empty where this process has trained none.
std::string result_of(const RunOutcome& outcome) {
  if (outcome.epochs.empty()) return "";
  const std::string epochs = count_text(std::ssize(outcome.epochs), "epoch");
  const auto& test = outcome.epochs.back().test;
  if (!test) return fmt::format(" after {}", epochs);
  return fmt::format(" after {}: test off {}, on {}", epochs, score_text(test->off), score_text(test->on));
}

}  // namespace

int report_outcome(const RunOutcome& outcome, const std::filesystem::path& folder, int rank) {
  const auto say = [&](const std::string& line) {
    if (rank == 0) print(line);
  };
  switch (outcome.status) {
    case RunStatus::diverged:
      throw NumericError("training diverged: {}; what was measured is in {}", outcome.error, folder.string());
    case RunStatus::stopped:
      say(fmt::format("stopped after {}; a checkpoint is in {}, --resume resumes from it\n",
                      count_text(std::ssize(outcome.epochs), "epoch"), (folder / "checkpoint").string()));
      return kStopped;
    default:
      say(fmt::format("done{}; the run is in {}\n", result_of(outcome), folder.string()));
      return kDone;
  }
}

}  // namespace strait::cli
