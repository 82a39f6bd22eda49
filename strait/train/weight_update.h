#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/base/named_tensors.h"
#include "strait/pipeline/data_parallel.h"
#include "strait/train/gradients.h"
#include "strait/train/placement.h"
#include "strait/train/previous_weights.h"
#include "strait/train/trainer_options.h"

namespace strait {

/// What a step does around its backward passes: gradients begin at zero; at the end they are added up over the
/// replicas and over ties and clipped, and the optimizer changes the weights at the schedule's rate.
/// Collective.
class WeightUpdate {
 public:
  /// Of the layers of this process's stages. The placement must outlive it.
  WeightUpdate(Placement& placement, const TrainerOptions& options);

  /// Before the step's first batch.
  void begin();

  /// Before a batch's own pass, where replicas need gradients at the weights that the step before began with:
  /// runs `pass`, which adds those of the batch, at these weights. It leaves nothing behind but what finish()
  /// takes. Does nothing elsewhere.
  void run_previous(uint64_t step, bool compressed, const std::function<void()>& pass);

  /// After its last. `step` counts the optimizer's steps before it, `at` is where the schedule stands. Throws
  /// NumericError for gradients that are not finite.
  void finish(uint64_t step, const SchedulePoint& at, bool compressed);

  /// The learning rate of the step that comes next.
  double rate(const SchedulePoint& at) const { return base_rate_ * schedule_(at); }

  /// Makes gradients as a step leaves them, for what comes behind a checkpoint: a gradient is then added to
  /// zero, which makes +0 of -0, where none would be replaced.
  void clear();

  /// The optimizer of a stage of this process, for a program that steps stage by stage. Each has its own, which
  /// makes no difference to LibTorch's: they treat every parameter by itself.
  Optimizer& optimizer(int stage) { return *stages_.at(stage).optimizer; }

  /// The names of what the optimizers keep of a parameter.
  const std::vector<std::string>& optimizer_state_names() const;

  /// Walks what the optimizers carry from step to step, as `PARAMETER.NAME`.
  void visit_optimizer_state(StateVisitor& visitor);

  /// What ties the replicas together.
  DataParallel& data_parallel() { return data_parallel_; }

  /// Walks what the exchange between replicas carries from step to step: DataParallel::visit_state(), and as
  /// `replicas.previous.PARAMETER` the weights of the step before where they are needed.
  void visit_replicas_state(StateVisitor& visitor);

 private:
  /// A stage of this process.
  struct OwnStage {
    NamedTensors parameters;               ///< by name
    std::unique_ptr<Optimizer> optimizer;  ///< of these
  };
  WeightUpdate(Placement& placement, const TrainerOptions& options,
               const std::shared_ptr<const Link>& replicas);
  static std::map<int, OwnStage> make_stages(const Placement& placement, const TrainerOptions& options);

  DataParallel data_parallel_;
  std::optional<PreviousWeights> previous_;  ///< where replicas may need them
  Gradients gradients_;
  std::map<int, OwnStage> stages_;  ///< by number
  RateSchedule schedule_;
  double base_rate_;
  double clip_norm_;
};

}  // namespace strait
