#include "strait/train/contribution.h"

#include <nlohmann/json.hpp>

namespace strait {
namespace {

using nlohmann::json;

json sums_json(const StepResult& sums) { return {sums.loss_sum, sums.correct, sums.count}; }

StepResult sums_in(const json& json) { return {json.at(0), json.at(1), json.at(2)}; }

std::string to_text(const Contribution& mine) {
  json stages = json::array();
  for (const auto& [number, times] : mine.stages) {
    stages.push_back({number, times.forward_seconds, times.backward_seconds, times.micro_batches});
  }
  return json{{"train", sums_json(mine.train)},
              {"off", sums_json(mine.off)},
              {"on", sums_json(mine.on)},
              {"boundaries", to_json(mine.boundaries)},
              {"stages", stages},
              {"seconds", mine.seconds},
              {"data_wait_seconds", mine.data_wait_seconds},
              {"measured_seconds", mine.measured_seconds}}
      .dump();
}

Contribution contribution_in(const std::string& text) {
  const json from = json::parse(text);
  Contribution part{.train = sums_in(from.at("train")),
                    .off = sums_in(from.at("off")),
                    .on = sums_in(from.at("on")),
                    .boundaries = boundary_traffic_of(from.at("boundaries")),
                    .stages = {},
                    .seconds = from.at("seconds"),
                    .data_wait_seconds = from.at("data_wait_seconds"),
                    .measured_seconds = from.at("measured_seconds")};
  for (const auto& stage : from.at("stages")) {
    part.stages[stage.at(0)] = {stage.at(1), stage.at(2), stage.at(3)};
  }
  return part;
}

}  // namespace

Contribution gather(Group& group, const Contribution& mine) {
  if (group.size() == 1) return mine;
  const auto texts = group.gather(to_text(mine));
  Contribution all = contribution_in(texts.front());
  for (size_t i = 1; i < texts.size(); ++i) {
    Contribution part = contribution_in(texts[i]);
    all.train += part.train;
    all.off += part.off;
    all.on += part.on;
    add_traffic(all.boundaries, part.boundaries);
    all.stages.merge(part.stages);
  }
  return all;
}

double bubble_share(const Contribution& all, int ranks) {
  double busy = 0;
  for (const auto& [number, times] : all.stages) busy += times.forward_seconds + times.backward_seconds;
  return all.measured_seconds > 0 ? 1 - busy / (ranks * all.measured_seconds) : 0;
}

}  // namespace strait
