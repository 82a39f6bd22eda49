#pragma once

#include <memory>

#include "strait/transport/group.h"

namespace strait {

/// Where a process stands among those that train together: first come the ranks of the first replica's
/// pipeline, then those of the second's, and so on.
struct RankTopology {
  int rank = 0;      ///< of the process, below `ranks`
  int ranks = 1;     ///< of all replicas together
  int replicas = 1;  ///< divides the ranks

  /// Ranks of one replica.
  int pipeline_ranks() const { return ranks / replicas; }

  /// The number of this rank's replica, from 0.
  int replica() const { return rank / pipeline_ranks(); }

  /// The rank of another replica that has the same stages.
  int rank_in(int other_replica) const { return other_replica * pipeline_ranks() + rank % pipeline_ranks(); }

  /// Whether both are among equally many processes of equally many replicas.
  bool is_alike(const RankTopology& other) const { return ranks == other.ranks && replicas == other.replicas; }
};

/// The pipeline of one replica, as a group of its own with ranks from 0. Its gather() is one of the whole
/// group, and so are its control channels: all replicas make the same calls.
std::shared_ptr<Group> pipeline_of(std::shared_ptr<Group> group, const RankTopology& place);

}  // namespace strait
