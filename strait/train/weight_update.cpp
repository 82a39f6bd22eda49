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
    : parameters_(placement.own().parameters()),
      data_parallel_(placement.group(), placement.topology(), static_cast<int>(placement.stages().size()),
                     own_stages(placement),
                     make_link(options.compression.replicas.codec, options.compression.replicas.feedback),
                     options.seed),
      gradients_(placement.model(), placement.stages(), placement.ranks(), placement.pipeline()),
      optimizer_(options.optimizer ? options.optimizer(parameters_)
                                   : make_optimizer(options.train.optimizer, parameters_)),
      schedule_(options.schedule ? options.schedule : make_rate_schedule(options.train.schedule)),
      base_rate_(options.train.optimizer.lr),
      clip_norm_(options.train.clip_norm) {}

void WeightUpdate::finish(uint64_t step, const SchedulePoint& at, bool compressed) {
  data_parallel_.sum_gradients(step, {.training = true, .compressed = compressed});
  gradients_.sum_ties();
  if (clip_norm_ > 0) gradients_.clip(clip_norm_);
  optimizer_->set_learning_rate(rate(at));
  optimizer_->step();
}

void WeightUpdate::clear() {
  for (const auto& parameter : parameters_) parameter.mutable_grad() = at::zeros_like(parameter);
}

}  // namespace strait
