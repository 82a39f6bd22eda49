#include "strait/train/weight_update.h"

#include <ATen/ops/zeros_like.h>

#include <utility>

namespace strait {
namespace {

std::vector<DataParallel::Stage> own_stages(const Placement& placement) {
  std::vector<DataParallel::Stage> own;
  for (size_t i = 0; i < placement.stages().size(); ++i) {
    if (!placement.is_here(i)) continue;
    own.push_back({static_cast<int>(i), placement.stage_name(i),
                   placement.model().part(placement.stages()[i]).parameters()});
  }
  return own;
}

}  // namespace

WeightUpdate::WeightUpdate(Placement& placement, const TrainerOptions& options)
    : data_parallel_(placement.group(), placement.topology(), static_cast<int>(placement.stages().size()),
                     own_stages(placement),
                     make_link(options.compression.replicas.codec, options.compression.replicas.feedback),
                     options.seed),
      gradients_(placement.model(), placement.stages(), placement.ranks(), placement.pipeline()),
      stages_(make_stages(placement, options)),
      schedule_(options.schedule ? options.schedule : make_rate_schedule(options.train.schedule)),
      base_rate_(options.train.optimizer.lr),
      clip_norm_(options.train.clip_norm) {}

std::map<int, WeightUpdate::OwnStage> WeightUpdate::make_stages(const Placement& placement,
                                                                const TrainerOptions& options) {
  std::map<int, OwnStage> stages;
  for (size_t i = 0; i < placement.stages().size(); ++i) {
    if (!placement.is_here(i)) continue;
    const Model part = placement.model().part(placement.stages()[i]);
    const auto parameters = part.parameters();
    stages[static_cast<int>(i)] = {part.named_parameters(),
                                   options.optimizer ? options.optimizer(parameters)
                                                     : make_optimizer(options.train.optimizer, parameters)};
  }
  return stages;
}

void WeightUpdate::begin() {
  for (auto& [number, stage] : stages_) stage.optimizer->zero_grad();
}

void WeightUpdate::finish(uint64_t step, const SchedulePoint& at, bool compressed) {
  data_parallel_.sum_gradients(step, {.training = true, .compressed = compressed});
  gradients_.sum_ties();
  if (clip_norm_ > 0) gradients_.clip(clip_norm_);
  for (auto& [number, stage] : stages_) {
    stage.optimizer->set_learning_rate(rate(at));
    stage.optimizer->step();
  }
}

void WeightUpdate::clear() {
  for (const auto& [number, stage] : stages_) {
    for (const auto& [name, parameter] : stage.parameters) parameter.mutable_grad() = at::zeros_like(parameter);
  }
}

const std::vector<std::string>& WeightUpdate::optimizer_state_names() const {
  return stages_.begin()->second.optimizer->state_names();
}

void WeightUpdate::visit_optimizer_state(StateVisitor& visitor) {
  for (auto& [number, stage] : stages_) stage.optimizer->visit_state(stage.parameters, visitor);
}

}  // namespace strait
