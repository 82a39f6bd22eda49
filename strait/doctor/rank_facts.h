#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strait/config/config.h"
#include "strait/doctor/diagnosis.h"

namespace strait {

/// What this process finds out about itself: `rank` is to run the `stages`, with the run's files in `folder`,
/// one of `processes_here` processes on this machine. It builds the network and loads the data, as training
/// does; what is wrong with them is a problem among the facts.
RankFacts facts_of_process(const Config& config, int rank, const std::vector<int>& stages,
                           const std::filesystem::path& folder, int processes_here);

/// As JSON, for the other ranks.
std::string facts_text(const RankFacts& facts);

/// The other way round. Throws WireError for what facts_text() does not give.
RankFacts parse_facts(const std::string& text, int rank);

}  // namespace strait
