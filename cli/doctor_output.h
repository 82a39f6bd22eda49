#pragma once

#include <span>
#include <string>

#include "strait/doctor/advice.h"
#include "strait/doctor/diagnosis.h"

namespace strait::cli {

/// The heading of the rows of links.
std::string links_heading();

/// A pair that was measured, as a row.
std::string link_row(const Diagnosis& diagnosis, const PairReport& pair);

/// What is known of the ranks and of the pairs that were not measured.
std::string ranks_text(const Diagnosis& diagnosis);

/// What there is to say, one line each, and whether the run can begin.
std::string findings_text(std::span<const Finding> findings);

}  // namespace strait::cli
