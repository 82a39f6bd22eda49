#pragma once

#include <filesystem>

#include "strait/experiment/run.h"

namespace strait::cli {

/// Says how a run ended and where its files are; gives the exit status. Of several processes the first does the
/// saying.
int report_outcome(const RunOutcome& outcome, const std::filesystem::path& folder, int rank = 0);

}  // namespace strait::cli
