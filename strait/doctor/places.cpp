#include "strait/doctor/places.h"

#include <algorithm>
#include <tuple>

#include "strait/transport/group_part.h"

namespace strait {
namespace {

int stage_count(const Config& config) { return static_cast<int>(config.model.cuts.size()) + 1; }

}  // namespace

std::vector<BoundaryPlace> boundary_places(const Config& config, int ranks) {
  std::vector<BoundaryPlace> places;
  for (int replica = 0; replica < config.pipeline.replicas; ++replica) {
    const RankTopology topology{.ranks = ranks, .replicas = config.pipeline.replicas};
    const int in_replica = topology.pipeline_ranks();
    const auto rank_of = [&](int stage) { return replica * in_replica + stage % in_replica; };
    for (int stage = 0; stage + 1 < stage_count(config); ++stage) {
      places.push_back({.name = config.model.cuts[static_cast<size_t>(stage)],
                        .replica = replica,
                        .before = rank_of(stage),
                        .behind = rank_of(stage + 1)});
    }
  }
  return places;
}

std::vector<RankPair> busy_pairs(const Config& config, int ranks) {
  std::vector<RankPair> pairs;
  for (const auto& place : boundary_places(config, ranks)) {
    if (place.before != place.behind) pairs.push_back(place.ranks());
  }
  const int replicas = config.pipeline.replicas;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankTopology topology{.rank = rank, .ranks = ranks, .replicas = replicas};
    for (int other = topology.replica() + 1; other < replicas; ++other) {
      pairs.push_back({rank, topology.rank_in(other)});
    }
  }
  const auto key = [](const RankPair& pair) { return std::tie(pair.low, pair.high); };
  std::ranges::sort(pairs, {}, key);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

std::vector<int> stages_of_rank(const Config& config, int rank, int ranks) {
  const RankTopology topology{.rank = rank, .ranks = ranks, .replicas = config.pipeline.replicas};
  std::vector<int> stages;
  for (int stage = rank % topology.pipeline_ranks(); stage < stage_count(config);
       stage += topology.pipeline_ranks()) {
    stages.push_back(stage);
  }
  return stages;
}

}  // namespace strait
