#pragma once

#include <string>
#include <vector>

#include "strait/config/config.h"

namespace strait {

/// Two ranks, as a pair without an order.
struct RankPair {
  int low = 0;   ///< the lower number
  int high = 0;  ///< the higher one

  bool operator==(const RankPair&) const = default;
};

/// A boundary between two stages, and the ranks on its sides.
struct BoundaryPlace {
  std::string name;  ///< the layer after which the network is cut
  int replica = 0;   ///< of the pipeline, from 0
  int before = 0;    ///< the rank of the stage before it
  int behind = 0;    ///< the rank of the stage behind it; the same where one process runs both

  /// Both, as a pair.
  RankPair ranks() const { return before < behind ? RankPair{before, behind} : RankPair{behind, before}; }
};

/// The boundaries of the pipeline of each replica, with that many ranks in all: one for each rank of the
/// schedule's plan in every replica, or one for each replica (check_process_count()).
std::vector<BoundaryPlace> boundary_places(const Config& config, int ranks);

/// The pairs of ranks that exchange much in every step: those beside a boundary, and those that have the same
/// stages in two replicas; each once, in an order that is the same everywhere.
std::vector<RankPair> busy_pairs(const Config& config, int ranks);

/// The stages of a rank, counted from 0.
std::vector<int> stages_of_rank(const Config& config, int rank, int ranks);

}  // namespace strait
