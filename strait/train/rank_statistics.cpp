#include "strait/train/rank_statistics.h"

#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/run/metrics_json.h"

namespace strait {
namespace {

using nlohmann::json;

json sums_json(const StepResult& sums) { return {sums.loss_sum, sums.correct, sums.count, sums.rows}; }

StepResult sums_in(const json& json) { return {json.at(0), json.at(1), json.at(2), json.at(3)}; }

std::string to_text(const RankStatistics& mine) {
  json test = json::object();
  for (const auto& [mode, sums] : mine.test) test[std::string(to_string(mode))] = sums_json(sums);
  return json{{"train", sums_json(mine.train)},
              {"test", test},
              {"boundaries", to_json(mine.boundaries)},
              {"stages", to_json(mine.stages)},
              {"feedback_state", mine.feedback_state},
              {"weights", mine.weights},
              {"seconds", mine.seconds},
              {"data_wait_seconds", mine.data_wait_seconds},
              {"links", to_json(mine.links)}}
      .dump();
}

RankStatistics rank_statistics_in(const std::string& text) {
  const std::string origin = "what another rank has measured";
  const json from = parse_json<WireError>(text, origin);
  RankStatistics part{.train = sums_in(from.at("train")),
                      .test = {},
                      .boundaries = boundary_traffic_in({from.at("boundaries"), origin, "boundaries"}),
                      .stages = stage_times_of(from.at("stages")),
                      .feedback_state = from.at("feedback_state"),
                      .weights = from.at("weights"),
                      .seconds = from.at("seconds"),
                      .data_wait_seconds = from.at("data_wait_seconds"),
                      .links = links_in({from.at("links"), origin, "links"})};
  for (const auto& [mode, sums] : from.at("test").items()) part.test[evaluation_mode(mode)] = sums_in(sums);
  return part;
}

}  // namespace

void StateHasher::tensor(std::string_view name, at::Tensor& value) {
  if (!value.defined()) return;
  const at::Tensor dense = value.to(at::kCPU).contiguous();
  sums.emplace(name, XXH3_64bits(dense.data_ptr(), dense.nbytes()));
}

std::map<std::string, uint64_t> feedback_state_of(std::vector<BoundaryEndpoints>& boundaries, int replica) {
  StateHasher hasher;
  PrefixedVisitor prefixed(fmt::format("replica {}", replica), hasher);
  for (BoundaryEndpoints& boundary : boundaries) boundary.visit_state(prefixed);
  return std::move(hasher.sums);
}

void check_ends_agree(const std::map<std::string, uint64_t>& feedback_state) {
  for (const auto& [name, sum] : feedback_state) {
    const auto other = feedback_state.find(peer_state_name(name));
    if (other != feedback_state.end() && other->second != sum) {
      throw Error("boundary state {}: the two endpoints no longer hold the same state", name);
    }
  }
}

RankStatistics gather(Group& group, const RankStatistics& mine) {
  if (group.size() == 1) return mine;
  const auto texts = group.gather(to_text(mine));
  RankStatistics all = rank_statistics_in(texts.front());
  for (size_t i = 1; i < texts.size(); ++i) {
    RankStatistics part = rank_statistics_in(texts[i]);
    all.train += part.train;
    for (const auto& [mode, sums] : part.test) all.test[mode] += sums;
    add_traffic(all.boundaries, part.boundaries);
    add_times(all.stages, part.stages);
    all.links.insert(all.links.end(), part.links.begin(), part.links.end());
    all.feedback_state.merge(part.feedback_state);
    for (const auto& [stage, sum] : part.weights) {
      if (all.weights.emplace(stage, sum).first->second == sum) continue;
      throw Error("stage {}: rank {} no longer holds the same weights as the first replica", stage, i);
    }
  }
  return all;
}

double bubble_share(const RankStatistics& all, int ranks) {
  double busy = 0;
  for (const auto& [stage, times] : all.stages) busy += times.forward_seconds + times.backward_seconds;
  return all.seconds > 0 ? 1 - busy / (ranks * all.seconds) : 0;
}

}  // namespace strait
