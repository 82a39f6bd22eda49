#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strait/boundary/boundary.h"
#include "strait/pipeline/exchange.h"
#include "strait/pipeline/plan.h"
#include "strait/pipeline/schedules.h"
#include "strait/pipeline/stage.h"
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

/// A batch on its way through the stages. `inputs` is read by the first stage, `targets` by the last; where
/// these are in other processes, they need not be defined.
struct StepInput {
  TensorList inputs;   ///< [B, ...] each
  at::Tensor targets;  ///< [B]
  uint64_t step = 0;   ///< optimizer steps taken before this batch
  int64_t rows = 0;    ///< B

  /// In training, the samples' indices in the training set; for links that keep something per sample.
  std::vector<int64_t> ids = {};
  std::vector<int64_t> next_ids = {};  ///< of the batch after this one, where they are known

  // Where these are part of a batch, of which other executors have the rest:
  int64_t first_row = 0;  ///< row of the batch at which they begin
  int64_t all_rows = 0;   ///< of the whole batch; 0: these are all
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
    /// How many tensors cross each cut, each over a boundary of its own, in order; empty: one each.
    std::vector<int> tensors_at_cut;
    Schedule schedule = "1f1b";    ///< of training; evaluation runs forward_only()
    int micro_batches = 1;         ///< parts into which a batch is cut
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
  /// that is not finite, and what the transport throws.
  StepResult train(const StepInput& batch, bool compressed);

  /// Forward only. EvaluationMode::live updates the state that a HeldState holds; the others update no link's
  /// state.
  StepResult evaluate(const StepInput& batch, EvaluationMode mode);

  /// The boundaries of the whole pipeline; not to be touched while a step runs.
  std::vector<BoundaryEndpoints>& boundaries() { return setup_.boundaries; }

  /// By stage, those of this process; since the last call.
  std::map<int, StageTimes> take_times() { return std::exchange(times_, {}); }

 private:
  struct Run;
  struct StepPlan {
    std::vector<Action> actions;   ///< of this rank
    std::vector<Action> expected;  ///< the receives among them
  };
  const StepPlan& plan_for(uint32_t micro_batches, bool training);
  StepResult execute(const StepInput& batch, MessageMode mode);
  void perform(const Action& action, Run& run);
  void forward(const Action& action, Run& run);
  void backward(const Action& action, Run& run);
  void send(const Action& action, Run& run);
  void receive(const Action& action, Run& run);
  std::vector<MessageSlot> slots_of(const Action& action, const Run& run) const;
  void check_outputs(const Action& action, const TensorList& outputs, const Run& run) const;

  Setup setup_;
  std::vector<int> first_boundary_;  ///< of each cut, and one past the last
  int64_t micro_rows_;
  Trace* trace_;
  std::map<std::pair<uint32_t, bool>, StepPlan> plans_;
  std::map<int, StageTimes> times_;
  std::unique_ptr<Exchange> exchange_;  // last: its threads use the boundaries
};

}  // namespace strait
