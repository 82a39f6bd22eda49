#include "strait/train/micro_batch_update.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/train/exchanged_values.h"

namespace strait {
namespace {

using Weights = std::vector<at::Tensor>;

/// Hides changes of tensors from the graphs that have saved them, which would refuse their backward pass. That
/// pass has the values that it is to have: MicroBatchUpdate sees to it.
class HiddenChanges {
 public:
  explicit HiddenChanges(const Weights& tensors) : tensors_(tensors) {
    for (const auto& tensor : tensors) {
      auto* const impl = tensor.unsafeGetTensorImpl();
      counts_.push_back(impl->version_counter());
      impl->set_version_counter(c10::VariableVersion(counts_.back().current_version()));
    }
  }
  ~HiddenChanges() {
    for (size_t i = 0; i < tensors_.size(); ++i)
      tensors_[i].unsafeGetTensorImpl()->set_version_counter(counts_[i]);
  }
  HiddenChanges(const HiddenChanges&) = delete;
  HiddenChanges& operator=(const HiddenChanges&) = delete;

 private:
  const Weights& tensors_;
  std::vector<c10::VariableVersion> counts_;
};

std::shared_ptr<Weights> copy_of(const Weights& parameters) {
  auto copy = std::make_shared<Weights>();
  for (const auto& parameter : parameters) copy->push_back(parameter.detach().clone());
  return copy;
}

/// The stage's layers with the ties among them.
Model with_ties(const Model& whole, const LayerRange& range, const std::string& schedule) {
  Model part = whole.part(range);
  const auto parameters = part.named_parameters();
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(parameters, [&](const auto& parameter) { return parameter.first == name; });
  };
  for (const auto& tie : whole.ties) {
    if (has(tie.first) != has(tie.second)) {
      throw InputError(
          "pipeline.schedule: \"{}\" steps every stage by itself, so that tied parameters are expected in "
          "one stage; {} and {} are in two",
          schedule, tie.first, tie.second);
    }
    if (has(tie.first)) part.ties.push_back(tie);
  }
  return part;
}

}  // namespace

MicroBatchUpdate::MicroBatchUpdate(const Placement& placement, WeightUpdate& update,
                                   const TrainerOptions& options)
    : update_(update),
      versions_(weight_versions(options.pipeline.schedule)),
      clip_norm_(options.train.clip_norm) {
  for (size_t i = 0; i < placement.stages().size(); ++i) {
    const Model part = with_ties(placement.model(), placement.stages()[i], options.pipeline.schedule);
    if (!placement.is_here(i)) continue;
    const std::vector<LayerRange> whole = {{0, part.layers.size()}};
    Optimizer& optimizer = update.optimizer(static_cast<int>(i));
    if (versions_ == WeightVersions::predicted && !optimizer.can_predict()) {
      throw InputError(
          "pipeline.schedule: \"{}\" predicts weights, so that an optimizer is expected whose OptimizerState "
          "has a direction",
          options.pipeline.schedule);
    }
    stages_[static_cast<int>(i)] = {
        .parameters = part.parameters(),
        .optimizer = &optimizer,
        .gradients = std::make_unique<Gradients>(part, whole, std::vector{0}, alone_)};
  }
}

void MicroBatchUpdate::start(const SchedulePoint& next) {
  for (auto& [number, stage] : stages_) {
    STRAIT_CHECK(stage.under_way.empty(), "stage {} has micro-batches under way", number);
    stage.next = next;
  }
}

void MicroBatchUpdate::forward(int number, const std::function<void()>& pass) {
  OwnStage& stage = stages_.at(number);
  const size_t steps_before_backward = stage.under_way.size();
  if (versions_ == WeightVersions::predicted && steps_before_backward > 0) {
    const double distance = update_.rate(stage.next) * static_cast<double>(steps_before_backward);
    const Weights predicted = stage.optimizer->predict(distance);
    const ExchangedValues values(stage.parameters, predicted);
    pass();
  } else {
    pass();
  }
  stage.under_way.push_back(nullptr);
}

void MicroBatchUpdate::backward(int number, const std::function<void()>& pass) {
  OwnStage& stage = stages_.at(number);
  STRAIT_CHECK(!stage.under_way.empty(), "stage {} has no micro-batch under way", number);
  const auto kept = std::move(stage.under_way.front());
  stage.under_way.pop_front();
  stage.optimizer->zero_grad();
  if (kept) {
    const ExchangedValues values(stage.parameters, *kept);
    pass();
  } else {
    pass();
  }
  step(stage);
}

void MicroBatchUpdate::step(OwnStage& stage) {
  if (versions_ == WeightVersions::stashed) {
    std::shared_ptr<Weights> newest;  // one copy for all that have it
    for (auto& weights : stage.under_way) {
      if (weights) continue;
      if (!newest) newest = copy_of(stage.parameters);
      weights = newest;
    }
  }
  stage.gradients->sum_ties();
  if (clip_norm_ > 0) stage.gradients->clip(clip_norm_);
  stage.optimizer->set_learning_rate(update_.rate(stage.next));
  const HiddenChanges hidden(stage.parameters);
  stage.optimizer->step();
  ++stage.next.step;
}

}  // namespace strait
