#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "strait/pipeline/schedules.h"
#include "strait/pipeline/weight_steps.h"
#include "strait/train/weight_update.h"

namespace strait {

/// The steps of a schedule with steps_per_micro_batch(), stage by stage and without a word between stages. A
/// step is WeightUpdate's, of one stage and one micro-batch: its gradient is clipped by its own norm, and its
/// rate is that of its number, which counts the stage's steps.
///
/// With WeightVersions::stashed (Harlap et al. 2018, PipeDream, section 3.3) a backward pass has the weights of
/// its forward pass. Old weights are kept only while a micro-batch under way has them, so that stage `s` of `S`
/// has at most S - s versions, the newest one included.
///
/// With WeightVersions::predicted (Guan et al. 2019, XPipe) a forward pass has w - rate * d * direction: w are
/// the newest weights, d the steps that the stage makes before the micro-batch's backward pass, and the
/// direction that of Optimizer::predict(). Everything else is of the newest weights, which the gradients are
/// added to and which the backward pass reads with the activations of its forward pass.
class MicroBatchUpdate : public WeightSteps {
 public:
  /// Of the stages of this process. `update` has their optimizers; it must outlive this, as the placement must.
  /// Throws InputError where parameters of two stages are tied, and for an optimizer that has no direction
  /// where weights are predicted.
  MicroBatchUpdate(const Placement& placement, WeightUpdate& update, const TrainerOptions& options);

  /// The next step of every stage is the one at that point of the schedule of rates. No micro-batch is under
  /// way.
  void start(const SchedulePoint& next);

  void forward(int stage, const std::function<void()>& pass) override;
  void backward(int stage, const std::function<void()>& pass) override;

 private:
  using Weights = std::vector<at::Tensor>;
  struct OwnStage {
    Weights parameters;
    Optimizer* optimizer = nullptr;
    std::unique_ptr<Gradients> gradients;
    std::deque<std::shared_ptr<Weights>> under_way = {};  ///< of each micro-batch its weights; null: the newest
    SchedulePoint next = {};
  };
  void step(OwnStage& stage);

  WeightUpdate& update_;
  WeightVersions versions_;
  double clip_norm_;
  SingleProcessGroup alone_;
  std::map<int, OwnStage> stages_;  ///< by number
};

}  // namespace strait
