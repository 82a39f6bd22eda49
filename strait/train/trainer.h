#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/checkpoint/checkpoint.h"
#include "strait/checkpoint/model_file.h"
#include "strait/data/loader.h"
#include "strait/train/automatic_codecs.h"
#include "strait/train/evaluator.h"
#include "strait/train/micro_batch_update.h"
#include "strait/train/observer.h"
#include "strait/train/placed_executor.h"
#include "strait/train/placement.h"
#include "strait/train/recorder.h"
#include "strait/train/step_log.h"
#include "strait/train/step_plan.h"
#include "strait/train/trainer_checkpoints.h"
#include "strait/train/trainer_options.h"
#include "strait/train/weight_update.h"
#include "strait/transport/stop_agreement.h"

namespace strait {

/// Trains a network that is cut into stages and evaluates it with compression off and on. All stages are in
/// this process, or in the processes of a group, which then makes every call together. The same seed and
/// number of threads give the same bits, however many processes there are. Several replicas of the pipeline
/// share every batch; the first alone evaluates.
///
/// With a schedule that steps_per_micro_batch() the pipeline is drained before what needs all stages to have
/// made the same steps: an evaluation, a checkpoint, the end of an epoch and a stop. So a checkpoint has one
/// version of every weight, and a training that is resumed equals one that was drained there.
///
/// It is the loop over its parts, each of which a program with a loop of its own can use without it: Placement,
/// PlacedExecutor, WeightUpdate, MicroBatchUpdate, Evaluator, Recorder, TrainerCheckpoints.
class Trainer {
 public:
  /// `model` is the whole network, in every process with the same weights. Throws InputError where Placement
  /// does, and when the device does not have train.precision. `trace` may be null; what it points to must
  /// outlive the trainer.
  Trainer(Model model, TrainerOptions options,
          std::shared_ptr<Group> group = std::make_shared<SingleProcessGroup>(), Trace* trace = nullptr);
  Trainer(const Trainer&) = delete;  // the parts refer to each other in place
  Trainer& operator=(const Trainer&) = delete;

  /// From now on train() leaves checkpoints there, this process's part of them. `config` is the run's
  /// configuration and `data` the fingerprint() of its data, for their record; both may be empty.
  void keep_checkpoints(CheckpointWriter writer, std::string config, std::string data = "") {
    checkpoints_.keep(std::move(writer), std::move(config), std::move(data));
  }

  /// Throws InputError where the data, loaded by now, do not go with the options. train() does so too.
  void check(const DataSplits& data);

  /// Throws InputError where what feedback keeps of so many samples has no room on this machine beside what it
  /// keeps in other processes there. To be asked before anything is kept; train() does so. Collective.
  void check_stores(int64_t samples);

  /// Takes over everything of a checkpoint: training resumes where it was taken, to the same bits.
  void resume(const Checkpoint& from);

  /// Takes over the weights, the position and, if wanted, the optimizer's state, but no feedback state. The
  /// state of LibTorch's generator comes along where the seed is the same: then this training equals one that
  /// made the epochs before by itself.
  void warm_start(const Checkpoint& from, bool with_optimizer);

  /// Takes over nothing but the state that evaluation in the modes frozen and live reads. Throws InputError
  /// where the checkpoint has none, and when its weights are not those that are here.
  void take_evaluation_state(const Checkpoint& from) { checkpoints_.take_evaluation_state(from); }

  /// The position, and what the epoch has summed up so far.
  const TrainingState& state() const { return state_; }

  /// The lines of metrics.jsonl up to the position, those before a resume included.
  const std::vector<std::string>& metrics() const { return metrics_; }

  /// The whole network, in which only the layers of this process's stages are trained.
  Model& model() { return placement_.model(); }

  /// Trains from the position until the epochs are done or the observer asks to stop; returns false, with a
  /// checkpoint at that place, when it was stopped. Throws NumericError when training diverges.
  bool train(const DataSplits& data, TrainObserver& observer);

  /// Scores every sample with compression off and on, changing nothing. Without `knows_state` in no mode that
  /// reads state of the links. `replicas` is that of the training: the samples come in its micro-batches.
  Evaluation evaluate(const std::shared_ptr<const Dataset>& data, TrainObserver& observer,
                      bool knows_state = true, int replicas = 1);

  /// Replaces the weights by a file's; see load_model().
  void load(const std::filesystem::path& weights) { load_model(weights, placement_.model()); }

  /// Replaces the weights by those of a file to start from; see strait::load_initial().
  void load_initial(const std::filesystem::path& weights) { strait::load_initial(weights, placement_.model()); }

  /// The whole network on the first process, with the weights of all stages as they are now; on the other
  /// ranks of its pipeline only their own stage's are right.
  const Model& collect_model() { return placement_.collect_model(); }

 private:
  StepPlan plan_for(const DataSplits& data) const;
  SchedulePoint point_at(const StepPlan& plan, int64_t step_of_epoch) const;
  std::vector<int64_t> order_of_epoch(int64_t samples) const;
  Loader load(const DataSplits& data, int64_t first) const;
  bool run_epoch(const DataSplits& data, TrainObserver& observer);
  bool train_epoch(const DataSplits& data, TrainObserver& observer);
  StepInput input_of(Batch& batch, const StepPlan::Part& part, std::vector<int64_t> next_ids) const;
  void train_batch(const StepInput& batch, const StepPlan& plan);
  void begin_codecs(const StepInput& batch, TrainObserver& observer);
  void choose_codecs(TrainObserver& observer);
  void drain();
  bool is_evaluation_due(const StepPlan& plan) const;
  bool is_evaluation_due_after_epoch(const StepPlan& plan) const;
  void log_steps(const StepPlan& plan, TrainObserver& observer);
  bool evaluate_if_due(const DataSplits& data, TrainObserver& observer);
  std::vector<NetworkMetrics> networks_so_far() const;
  void save_checkpoint();

  CompressionOptions asked_;  ///< of which options_ has no codec that is chosen yet
  TrainerOptions options_;
  Placement placement_;
  PlacedExecutor executor_;
  WeightUpdate update_;
  std::optional<MicroBatchUpdate> micro_batch_update_;  ///< where every micro-batch is a step
  Evaluator evaluator_;
  Recorder recorder_;
  StepLog step_log_;
  bool is_resumed_ = false;
  TrainerCheckpoints checkpoints_;
  std::optional<AutomaticCodecs> automatic_codecs_;  ///< where codecs are chosen
  std::optional<StopAgreement> stop_;                ///< of the training or evaluation that is under way
  TrainingState state_;
  std::vector<std::string> metrics_;
};

}  // namespace strait
