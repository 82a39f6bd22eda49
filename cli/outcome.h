#pragma once

#include <filesystem>

#include "strait/experiment/run.h"

namespace strait::cli {

/// Says how a run ended and where its files are; gives the exit status.
int report_outcome(const RunOutcome& outcome, const std::filesystem::path& folder);

}  // namespace strait::cli
