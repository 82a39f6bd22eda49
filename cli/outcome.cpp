#include "cli/outcome.h"

#include <fmt/format.h>

#include "cli/exit_status.h"
#include "cli/output.h"

namespace strait::cli {

int report_outcome(const RunOutcome& outcome, const std::filesystem::path& folder) {
  switch (outcome.status) {
    case RunStatus::diverged:
      throw NumericError("training diverged: {}; what was measured is in {}", outcome.error, folder.string());
    case RunStatus::stopped:
      print(fmt::format("stopped after {} epochs; the weights are in {}\n", outcome.epochs.size(),
                        (folder / "model.safetensors").string()));
      return kStopped;
    default:
      print(fmt::format("done; the run is in {}\n", folder.string()));
      return kDone;
  }
}

}  // namespace strait::cli
