#include "cli/outcome.h"

#include <fmt/format.h>

#include "cli/exit_status.h"
#include "cli/output.h"

namespace strait::cli {

int report_outcome(const RunOutcome& outcome, const std::filesystem::path& folder, int rank) {
  const auto say = [&](const std::string& line) {
    if (rank == 0) print(line);
  };
  switch (outcome.status) {
    case RunStatus::diverged:
      throw NumericError("training diverged: {}; what was measured is in {}", outcome.error, folder.string());
    case RunStatus::stopped:
      say(fmt::format("stopped after {} epochs; a checkpoint is in {}, --resume goes on from it\n",
                      outcome.epochs.size(), (folder / "checkpoint").string()));
      return kStopped;
    default:
      say(fmt::format("done; the run is in {}\n", folder.string()));
      return kDone;
  }
}

}  // namespace strait::cli
