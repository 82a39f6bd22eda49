#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strait/boundary/boundary.h"
#include "strait/pipeline/cut.h"
#include "strait/pipeline/cut_finder.h"
#include "strait/pipeline/data_parallel.h"
#include "strait/pipeline/executor.h"
#include "strait/pipeline/gradient_norm.h"
#include "strait/pipeline/schedules.h"
#include "strait/pipeline/stage_module.h"
#include "strait/transport/group.h"
#include "strait/transport/group_part.h"

namespace strait {

/// A network in stages, with what crosses between them.
struct PipelineSetup {
  /// In order. Every process lists all of them; those that other processes run may be empty.
  std::vector<StageModule> stages;

  /// One behind each stage but the last. Where several tensors cross, each has a channel of its own over these
  /// links, under the name `NAME.0`, `NAME.1`...
  std::vector<Boundary> boundaries;

  /// The mean over the rows of a micro-batch, or over what it counts. It may be empty where another process has
  /// the last stage, and where the pipeline only predicts.
  LossModule loss;

  /// A name without steps_per_micro_batch(), or a schedule of the user's own. With several stages on each of
  /// several ranks no name but `interleaved` serves.
  Schedule schedule = "1f1b";
  int micro_batches = 1;   ///< at most so many parts of a batch (torch.chunk)
  int64_t batch_size = 0;  ///< rows of a full batch of training; 0: those of the first one

  /// Pipelines side by side, each with samples of its own; divides the processes. After every batch they
  /// average their gradients, which cross `replica_link` (null: as they are) as one message per stage.
  int replicas = 1;
  std::shared_ptr<const Link> replica_link = nullptr;  ///< for those gradients

  uint64_t seed = 0;             ///< of codecs that draw random numbers
  at::Device device = at::kCPU;  ///< of the stages of this process, their inputs and the targets
  Trace* trace = nullptr;        ///< where what is done when goes; must outlive the pipeline
};

/// A batch, of which each process needs a part.
struct PipelineBatch {
  TensorList inputs = {};   ///< [B, ...] each, read in the process of the first stage
  at::Tensor targets = {};  ///< [B, ...], read in the process of the last stage
  /// The samples' numbers in the training set, in training with links that keep something per sample
  /// (Slots::samples).
  std::vector<int64_t> ids = {};
  std::vector<int64_t> classes = {};  ///< the samples' labels, where links keep something per class
  /// [B, ...] each, such as a mask: every stage is given them behind what crosses to it. They cross no cut, so
  /// that every process must have them, and have no gradient.
  TensorList extras = {};

  /// B, as the inputs, the targets or the ids say; 0 where none of them does.
  int64_t rows() const;
};

/// What a batch came to, as far as this process knows.
struct StepReport {
  std::optional<double> loss;  ///< mean over the rows, or what the loss counts; where the last stage is
  int64_t rows = 0;            ///< of the batch
  int64_t correct = 0;         ///< what the loss counted (Loss::correct), in the process of the last stage
  Traffic traffic;             ///< of the channels that end here, both directions; of training only
  double seconds = 0;          ///< in this call
};

/// A network of the user's own, split into stages over the processes of a group, or all in one process. The
/// user owns modules, loss, optimizer and loop; the pipeline owns what happens between the stages.
///
/// Stage `s` runs on rank `s mod R` of the R processes of a replica; a single process runs all stages, with the
/// same bits where the modules draw no random numbers. With codec `none` and one micro-batch the losses and
/// gradients are those of the unsplit network, bit for bit. All calls are collective: each process makes them
/// in the same order.
///
/// Errors are one line. Where one process fails, the others hear of it and throw too, within the group's
/// timeout, and so do all later batches. A single process goes on with the next batch: links have taken in what
/// crossed until then, and the gradients are those of a part of the batch.
class Pipeline {
 public:
  /// Throws InputError for a setup that cannot be: a parameter in two stages, a module on another device, a
  /// number of boundaries that is not one less than the stages, processes that do not divide the stages.
  /// Throws Error where another process has another setup.
  explicit Pipeline(PipelineSetup setup, std::shared_ptr<Group> group = std::make_shared<SingleProcessGroup>());
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Forward and backward over a batch: adds the gradients of the batch's mean loss to the parameters' grads.
  /// With replicas that is the mean of theirs, whatever the parts of the batch count.
  ///
  /// Where inputs and targets are not read they may be undefined, but of the two and the ids one must say how
  /// many rows there are. Processes that both have targets in host memory compare them: checksums travel with
  /// the messages.
  ///
  /// The first call runs a row through the stages, in evaluation mode and with the random state put back, to
  /// find what crosses each cut (infer_cuts()), and so does each whose inputs have a shape for the first time,
  /// which every process must then see; of a stage that is a function and not a module, buffers may notice.
  /// float16 and bfloat16 cross as float32 through the codecs, integers from 0 to below 2^32 and bool as they
  /// are; what depends on no parameter that is trained has no gradient. Throws InputError for a stage that
  /// cannot run on what the one before gives, for another shape where a link keeps rows of one, for a loss that
  /// is no scalar or has no gradient and, with replicas, for a parameter that was frozen, unfrozen or replaced
  /// since the first call, WireError for a message of another step or of a batch with other targets,
  /// NumericError for a message or a loss that is not finite, and what modules, loss and codecs throw.
  StepReport train(const PipelineBatch& batch);
  /// The same for several inputs.
  StepReport train(TensorList inputs, at::Tensor targets, std::vector<int64_t> ids = {},
                   std::vector<int64_t> classes = {}) {
    return train({std::move(inputs), std::move(targets), std::move(ids), std::move(classes)});
  }
  /// The same for one input.
  StepReport train(at::Tensor input, at::Tensor targets, std::vector<int64_t> ids = {},
                   std::vector<int64_t> classes = {}) {
    return train(TensorList{std::move(input)}, std::move(targets), std::move(ids), std::move(classes));
  }

  /// Forward alone, with compression as the mode says (EvaluationMode::off: without), of any number of rows.
  /// The modules stay in the mode, training or evaluation, in which the user put them.
  StepReport evaluate(const PipelineBatch& batch, EvaluationMode mode = EvaluationMode::plain);
  /// The same for several inputs.
  StepReport evaluate(TensorList inputs, at::Tensor targets, EvaluationMode mode = EvaluationMode::plain) {
    return evaluate(PipelineBatch{std::move(inputs), std::move(targets)}, mode);
  }
  /// The same for one input.
  StepReport evaluate(at::Tensor input, at::Tensor targets, EvaluationMode mode = EvaluationMode::plain) {
    return evaluate(TensorList{std::move(input)}, std::move(targets), mode);
  }

  /// The last stage's output, forward alone as evaluate() does it: [B, ...] each, in the process of that stage;
  /// none elsewhere. The inputs say everywhere how many rows there are; targets are not read.
  TensorList predict(PipelineBatch batch, EvaluationMode mode = EvaluationMode::plain);
  /// The same for inputs alone.
  TensorList predict(TensorList inputs, EvaluationMode mode = EvaluationMode::plain) {
    return predict(PipelineBatch{std::move(inputs)}, mode);
  }

  /// Scales the gradients so that their 2-norm over all stages is at most `limit`, as PyTorch's clip_grad_norm_
  /// does over one process, and gives the norm that they had. Throws NumericError where that is not finite.
  double clip_grad_norm(double limit);

  /// Whether training compresses from now on; it does from the beginning. Links hear of messages that cross
  /// without, as AQ-SGD's warm-up wants it.
  void compress(bool on) { compressed_ = on; }

  /// Says that parameters have been frozen or unfrozen since the first batch: the next one finds anew which
  /// tensors need a gradient, and no others come back over the cuts. Every process calls it. A single process
  /// sees that by itself. Without it gradients that nobody needs any more go on coming back, and train()
  /// throws InputError for one that is needed and would not come. With replicas a new pipeline is needed.
  void parameters_changed() { cut_finder_->forget(); }

  /// Which samples the call of train() after the next will be given, for links that keep something per sample
  /// on a disk: the next call reads it ahead.
  void prefetch(std::vector<int64_t> ids) { next_ids_ = std::move(ids); }

  /// The parameters of this process's stages, as the modules have them at this time, for the optimizer.
  std::vector<at::Tensor> parameters() const;

  /// Whether this process runs the stage.
  bool runs(int stage) const { return rank_of_stage_.at(static_cast<size_t>(stage)) == pipeline_->rank(); }

  /// Which of the replicas this process belongs to, from 0: which part of the data it trains with.
  int replica() const { return topology().replica(); }

  /// What all processes know of a batch: the loss (with replicas the mean of those that have one), the rows and
  /// what the loss counted in all replicas, the traffic of every process and the longest time. It takes a round
  /// of messages; train() needs none.
  StepReport gather(const StepReport& mine);

  /// Calls of train() so far; seeds the random draws of codecs.
  uint64_t step() const { return step_; }

  /// For a program that resumes: the next call of train() is that of this number.
  void set_step(uint64_t step) { step_ = step; }

  /// The state of this process's links, of boundaries and of replicas, for checkpoints. Nothing before
  /// prepare() or the first batch.
  void visit_state(StateVisitor& visitor);

  /// The ends of the boundaries in this process: for evaluation in the mode live (HeldState), their
  /// diagnostics. Empty before prepare() or the first batch.
  std::vector<BoundaryEndpoints>& boundaries();

  /// What the first call of train() or evaluate() does beforehand, for programs that load the links' state.
  /// `inputs` and `extras` are of the shape of a batch; there are no inputs where the first stage is elsewhere.
  void prepare(const TensorList& inputs, int64_t rows, const TensorList& extras = {});

 private:
  struct FirstParameter {
    at::Tensor tensor;
    bool trained;
  };

  bool is_last_here() const { return runs(static_cast<int>(setup_.stages.size()) - 1); }
  void check() const;
  bool has_slots(Slots slots) const;
  StepReport run(const PipelineBatch& batch,
                 const std::function<StepResult(Executor& executor, const StepInput& input)>& work);
  StepInput input_of(const PipelineBatch& batch) const;
  RankTopology topology() const { return {group_->rank(), group_->size(), setup_.replicas}; }
  void make_executor(int64_t rows);
  void take_cuts(const Cuts& cuts);
  void make_data_parallel();
  StageLoss loss_of_last_stage();
  std::function<double(int64_t, int64_t)> weigh(const at::Tensor& targets) const;
  std::vector<StageParameter> own_parameters() const;
  void check_trained() const;
  Traffic take_traffic();

  PipelineSetup setup_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> pipeline_;  ///< of the group the processes of this replica
  std::vector<int> rank_of_stage_;
  std::optional<CutFinder> cut_finder_;
  Cuts cuts_;  ///< what crosses each cut now
  std::unique_ptr<Transport> transport_;
  std::optional<Executor> executor_;
  std::optional<DataParallel> data_parallel_;
  std::vector<FirstParameter> first_parameters_;  ///< own_parameters() when the first batch came
  std::vector<TensorList>* outputs_ = nullptr;    ///< where predict() wants those of the last stage
  std::vector<int64_t> next_ids_;
  uint64_t step_ = 0;
  bool compressed_ = true;
  bool failed_ = false;  ///< together with the group
};

}  // namespace strait
