#include "strait/train/weight_update.h"

#include <ATen/ops/zeros_like.h>

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
    : WeightUpdate(placement, options,
                   make_link(options.compression.replicas.codec, options.compression.replicas.feedback)) {}

WeightUpdate::WeightUpdate(Placement& placement, const TrainerOptions& options,
                           const std::shared_ptr<const Link>& replicas)
    : data_parallel_(placement.group(), placement.topology(), static_cast<int>(placement.stages().size()),
                     own_stages(placement), replicas, options.seed),
      gradients_(placement.model(), placement.stages(), placement.ranks(), placement.pipeline()),
      stages_(make_stages(placement, options)),
      schedule_(options.schedule ? options.schedule : make_rate_schedule(options.train.schedule)),
      base_rate_(options.train.optimizer.lr),
      clip_norm_(options.train.clip_norm) {
  if (placement.topology().replicas > 1 && replicas->needs_previous()) previous_.emplace(placement.own());
}

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
  if (previous_) previous_->begin();
}

void WeightUpdate::run_previous(uint64_t step, bool compressed, const std::function<void()>& pass) {
  if (data_parallel_.needs_previous(step, {.training = true, .compressed = compressed})) previous_->run(pass);
}

void WeightUpdate::finish(uint64_t step, const SchedulePoint& at, bool compressed) {
  const MessageMode mode{.training = true, .compressed = compressed};
  data_parallel_.sum_gradients(step, mode, previous_ ? previous_->gradients() : std::span<const at::Tensor>());
  if (previous_ && compressed) previous_->keep();
  if (previous_ && !compressed) previous_->drop();
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

void WeightUpdate::visit_replicas_state(StateVisitor& visitor) {
  data_parallel_.visit_state(visitor);
  PrefixedVisitor prefixed(fmt::format("{}.previous", DataParallel::kName), visitor);
  if (previous_) previous_->visit_state(prefixed);
}

void WeightUpdate::visit_optimizer_state(StateVisitor& visitor) {
  for (auto& [number, stage] : stages_) stage.optimizer->visit_state(stage.parameters, visitor);
}

}  // namespace strait
