#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "strait/boundary/boundary.h"
#include "strait/codecs/device_order.h"
#include "strait/pipeline/exchange.h"
#include "strait/pipeline/micro_batch_queue.h"
#include "strait/pipeline/plan.h"
#include "strait/pipeline/schedules.h"
#include "strait/pipeline/stage.h"
#include "strait/pipeline/weight_steps.h"
#include "strait/transport/transport.h"

namespace strait {

/// Sums over the samples of a batch, as the last stage saw them.
struct StepResult {
  double loss_sum = 0;  ///< sum over `count` of the loss
  int64_t correct = 0;  ///< predictions that were right
  int64_t count = 0;    ///< predictions, of which a sample may have several
  int64_t rows = 0;     ///< samples

  /// Adds the numbers of another part.
  StepResult& operator+=(const StepResult& part) {
    loss_sum += part.loss_sum;
    correct += part.correct;
    count += part.count;
    rows += part.rows;
    return *this;
  }
};

/// What a stage's computations took.
struct StageTimes {
  double forward_seconds = 0;   ///< of training, all together
  double backward_seconds = 0;  ///< likewise
  int64_t micro_batches = 0;    ///< of training
};

/// Runs this process's part of plans: every action in order, with boundaries and transport between the stages.
/// The one place where a schedule meets tensors; it knows no schedule by name.
class Executor {
 public:
  /// What an executor is made of.
  struct Setup {
    int stage_count = 1;                        ///< of the whole pipeline
    int rank = 0;                               ///< this process among `ranks`
    int ranks = 1;                              ///< 1: all stages are here, and take turns
    std::map<int, Stage> stages;                ///< those of this process, by their number
    std::vector<BoundaryEndpoints> boundaries;  ///< of the whole pipeline, with the endpoints that are here
    /// Shape of one sample at each boundary, without the batch dimension.
    std::vector<std::vector<int64_t>> sample_shapes;
    /// How many tensors cross each cut, each over a boundary of its own, in order; empty: one each. They are
    /// float32, or int64 where the boundary's link carries integers, which cross forward alone.
    std::vector<int> tensors_at_cut;
    /// Whether a gradient comes back over each boundary that carries no integers; empty: it does.
    std::vector<bool> gradients;
    Schedule schedule = "1f1b";    ///< of training; evaluation runs forward_only()
    int micro_batches = 1;         ///< at most so many parts of a batch (torch.chunk)
    int stages_per_rank = 1;       ///< of the plan, also where one process has them all
    int64_t batch_size = 1;        ///< rows of a full batch; fixes the rows of a micro-batch
    uint64_t seed = 0;             ///< of the run
    at::Device device = at::kCPU;  ///< of the stages
  };

  /// `trace` may be null.
  Executor(Setup setup, Transport& transport, Trace* trace = nullptr);

  /// Forward and backward over the batch: adds the gradients of the batch's mean loss to the parameters (of
  /// a part of a batch: its share in those of the whole batch's mean loss). The
  /// result's numbers are those that this process's stages know. Throws NumericError for a message or a loss
  /// that is not finite, InputError for a plan of the schedule that validate() or simulate() refuses, and what
  /// the transport throws. Not for a schedule with steps_per_micro_batch(). No diagnostics measure the messages
  /// of a pass that is not `diagnosed`.
  StepResult train(const StepInput& batch, bool compressed, bool diagnosed = true);

  /// For a schedule with steps_per_micro_batch(): takes the batch into the pipeline. The last stage is done
  /// with it then, and so the result is whole; the stages before it have backward passes of at most stages - 1
  /// micro-batches left, which come with the next batches or with drain(). The gradient of each micro-batch is
  /// that of its own mean loss. Throws what train() throws.
  StepResult stream(const StepInput& batch, bool compressed, WeightSteps& weights);

  /// Does what stream() has left over; then every stage has made as many steps as the others. Throws what
  /// train() throws.
  void drain(WeightSteps& weights);

  /// Forward only. EvaluationMode::live updates the state that a HeldState holds; the others update no link's
  /// state. Not between stream() and drain().
  StepResult evaluate(const StepInput& batch, EvaluationMode mode);

  /// Forward and backward over the batch with the codecs of the links, without their feedback: adds the
  /// gradients of its mean loss to the parameters. Nothing of it is counted, and no link's state moves. A
  /// message that its codec refuses, since it is not finite, crosses as zeros; so gradients and loss need not
  /// be finite, nor right then. With any schedule, but not between stream() and drain(). Throws what the
  /// transport throws.
  StepResult trial(const StepInput& batch);

  /// Cuts batches as if a full one had so many rows from now on; not between stream() and drain().
  void set_batch_size(int64_t rows);

  /// Replaces Setup::sample_shapes and Setup::gradients; not between stream() and drain().
  void set_crossing(std::vector<std::vector<int64_t>> sample_shapes, std::vector<bool> gradients);

  /// The boundaries of the whole pipeline; not to be touched while a step runs.
  std::vector<BoundaryEndpoints>& boundaries() { return setup_.boundaries; }

  /// By stage, those of this process; since the last call.
  std::map<int, StageTimes> take_times();

 private:
  enum class Work { train, evaluate, trial, stream, drain };
  /// A pass of training that the device may not be through with.
  struct Pass {
    int stage;
    double StageTimes::*sum;  ///< what it counts towards
    DeviceMoment begin;
    DeviceMoment end;
  };
  struct Run;
  struct StepPlan {
    std::vector<Action> actions;   ///< of this rank
    std::vector<Action> expected;  ///< the receives among them
  };
  StepResult run_batch(Work work, const StepInput& batch, MessageMode mode);
  StepResult execute(Work work, int under_way, int added, WeightSteps* weights);
  const StepPlan& plan_for(Work work, int under_way, int added);
  StepPlan make_plan(Work work, int under_way, int added) const;
  void perform(const Action& action, Run& run);
  void forward(const Action& action, Run& run);
  void backward(const Action& action, Run& run);
  void send(const Action& action, Run& run);
  void receive(const Action& action, Run& run);
  std::vector<MessageSlot> slots_of(const Action& action) const;
  void add_passes();
  void check_outputs(const Action& action, const TensorList& outputs) const;
  bool carries_integers(int boundary) const;
  bool has_gradient(int boundary) const;
  std::vector<bool> gradients_at(int cut) const;

  Setup setup_;
  std::vector<int> first_boundary_;  ///< of each cut, and one past the last
  Trace* trace_;
  std::map<std::tuple<Work, int, int>, StepPlan> plans_;
  MicroBatchQueue micro_batches_;
  std::map<int, StageTimes> times_;
  std::vector<Pass> passes_;            ///< that are not in times_ yet
  std::unique_ptr<Exchange> exchange_;  // last: its threads use the boundaries
};

}  // namespace strait
