#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/boundary/options.h"
#include "strait/data/dataset.h"
#include "strait/data/loader.h"
#include "strait/models/model.h"
#include "strait/pipeline/data_parallel.h"
#include "strait/pipeline/executor.h"
#include "strait/train/checkpoint.h"
#include "strait/train/checkpoint_copies.h"
#include "strait/train/gradients.h"
#include "strait/train/learning_rate.h"
#include "strait/train/metrics.h"
#include "strait/train/model_file.h"
#include "strait/train/optimizer.h"
#include "strait/train/options.h"
#include "strait/train/rank_statistics.h"
#include "strait/train/store_budget.h"
#include "strait/train/task.h"
#include "strait/transport/group.h"
#include "strait/transport/stop_agreement.h"

namespace strait {

/// Everything that training a network needs to know.
struct TrainerOptions {
  uint64_t seed = 0;               ///< of every random number after the initial weights
  int64_t batch_size = 100;        ///< of all replicas together
  TrainOptions train;              ///< [train] of a configuration
  PipelineOptions pipeline;        ///< [pipeline] of a configuration
  CompressionOptions compression;  ///< [compression] of a configuration
  std::vector<std::string> cuts;   ///< see cut_into_stages()
  Task task = classification();    ///< loss and metrics

  /// Makes an optimizer of a program's own; where it is empty, `train` says which.
  std::function<std::unique_ptr<Optimizer>(const std::vector<at::Tensor>& parameters)> optimizer = {};

  /// Of a program's own, times train.optimizer.lr; likewise.
  RateSchedule schedule = {};
};

/// Hears of progress while it happens, in the thread that trains.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;

  /// After each batch. `phase` is "train" or "test"; `done` of `total` samples of the pass. The loss is not a
  /// number on a process without the last stage.
  virtual void on_batch(int /*epoch*/, const char* /*phase*/, int64_t /*done*/, int64_t /*total*/,
                        double /*mean_loss*/) {}

  /// After each epoch and its evaluation.
  virtual void on_epoch(const EpochMetrics& /*metrics*/) {}

  /// After an evaluation within an epoch.
  virtual void on_evaluation(const StepEvaluation& /*evaluation*/) {}

  /// A line about the run that is worth reading: how it begins, what it will need.
  virtual void on_note(const std::string& /*line*/) {}

  /// Asked before each batch; true ends the run after the optimizer's step that the batch is part of. With
  /// several processes any may say so, and all end after the same step, soon after (StopAgreement).
  virtual bool should_stop() { return false; }
};

/// Trains a network that is cut into stages and evaluates it with compression off and on. All stages are in
/// this process, or one in each process of a group, which then makes every call together. The same seed and
/// number of threads give the same bits, however many processes there are. Several replicas of the pipeline
/// share every batch; the first alone evaluates.
class Trainer {
 public:
  /// `model` is the whole network, in every process with the same weights. Throws InputError when the group is
  /// not one process for each stage of each replica, and when the device does not have train.precision. `trace`
  /// may be null; what it points to must outlive the trainer.
  Trainer(Model model, TrainerOptions options,
          std::shared_ptr<Group> group = std::make_shared<SingleProcessGroup>(), Trace* trace = nullptr);
  Trainer(const Trainer&) = delete;  // the stages refer to the model in place
  Trainer& operator=(const Trainer&) = delete;

  /// From now on train() leaves checkpoints there, this process's part of them. `config` is the run's
  /// configuration, for their record.
  void keep_checkpoints(CheckpointWriter writer, std::string config);

  /// Throws InputError where the data, loaded by now, do not go with the options. train() does so too.
  void check(const DataSplits& data);

  /// Takes over everything of a checkpoint: training resumes where it was taken, to the same bits.
  void resume(const Checkpoint& from);

  /// Takes over the weights, the position and, if wanted, the optimizer's state, but no feedback state. The
  /// state of LibTorch's generator comes along where the seed is the same: then this training equals one that
  /// made the epochs before by itself.
  void warm_start(const Checkpoint& from, bool with_optimizer);

  /// Takes over nothing but the state that evaluation in the modes frozen and live reads. Throws InputError
  /// where the checkpoint has none, and when its weights are not those that are here.
  void take_evaluation_state(const Checkpoint& from);

  /// The position, and what the epoch has summed up so far.
  const TrainingState& state() const { return state_; }

  /// The lines of metrics.jsonl up to the position, those before a resume included.
  const std::vector<std::string>& metrics() const { return metrics_; }

  /// The whole network, in which only the layers of this process's stages are trained.
  Model& model() { return model_; }

  /// Trains from the position until the epochs are done or the observer asks to stop; returns false, with a
  /// checkpoint at that place, when it was stopped. Throws NumericError when training diverges.
  bool train(const DataSplits& data, TrainObserver& observer);

  /// Scores every sample with compression off and on, changing nothing. Without `knows_state` in no mode that
  /// reads state of the links.
  Evaluation evaluate(const std::shared_ptr<const Dataset>& data, TrainObserver& observer,
                      bool knows_state = true);

  /// Replaces the weights by a file's; see load_model().
  void load(const std::filesystem::path& weights) { load_model(weights, model_); }

  /// The whole network on the first process, with the weights of all stages as they are now; on the other
  /// ranks of its pipeline only their own stage's are right.
  const Model& collect_model();

 private:
  Executor make_executor();
  DataParallel make_data_parallel();
  RankTopology place() const { return {group_->rank(), group_->size(), options_.pipeline.replicas}; }
  bool is_alone() const { return pipeline_->size() == 1; }
  void check_samples(int64_t samples) const;
  void plan_steps(int64_t samples);
  StoreBudget store_budget(int64_t samples);
  std::string stage_name(size_t stage) const;
  /// A batch as part of a step of the optimizer.
  struct StepPart {
    int64_t first_row = 0;  ///< of this replica's share of the batch, among the rows of the step
    int64_t all_rows = 0;   ///< of the step
    bool begins = true;     ///< the step
    bool ends = true;
  };
  StepPart part_of_step(int64_t batch, int64_t samples) const;
  double learning_rate_at(int64_t step_of_epoch) const;
  int64_t steps_of(int64_t batches) const;
  void finish_step(bool compressed);
  bool run_epoch(const DataSplits& data, TrainObserver& observer);
  bool train_epoch(const DataSplits& data, TrainObserver& observer);
  bool is_evaluation_due() const;
  bool evaluate_if_due(const DataSplits& data, TrainObserver& observer);
  RankStatistics rank_statistics();
  EpochMetrics epoch_metrics(const RankStatistics& all) const;
  Evaluation evaluation_of(const RankStatistics& all) const;
  std::map<EvaluationMode, StepResult> evaluate_passes(const std::shared_ptr<const Dataset>& data,
                                                       TrainObserver& observer, int epoch, bool knows_state);
  StepResult evaluate_pass(const std::shared_ptr<const Dataset>& data, EvaluationMode mode,
                           TrainObserver& observer, int epoch);
  void take_in_measurements();
  std::vector<int64_t> order_of_epoch(int64_t samples) const;
  Loader load(const std::shared_ptr<const Dataset>& data, Loader::Pass pass) const;
  void clear_gradients();
  void save_checkpoint();

  Model model_;
  TrainerOptions options_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> pipeline_;  ///< of the group the ranks of this replica
  Trace* trace_;
  at::Device device_;
  std::vector<LayerRange> stages_;
  std::vector<int> rank_of_stage_;
  Model own_;  ///< the layers of this process's stages
  std::unique_ptr<Transport> transport_;
  Executor executor_;
  DataParallel data_parallel_;
  Gradients gradients_;
  std::optional<StopAgreement> stop_;  ///< of the training or evaluation that is under way
  bool stopped_ = false;               ///< the last pass ended before its data did
  std::unique_ptr<Optimizer> optimizer_;
  TrainingState state_;
  int64_t epoch_steps_ = 0;  ///< of the optimizer in an epoch
  std::vector<std::string> metrics_;
  std::optional<CheckpointWriter> checkpoints_;
  std::string config_;
};

}  // namespace strait
