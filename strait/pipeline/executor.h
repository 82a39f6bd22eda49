#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strait/boundary/boundary.h"
#include "strait/pipeline/options.h"
#include "strait/pipeline/plan.h"
#include "strait/pipeline/stage.h"
#include "strait/transport/transport.h"

namespace strait {

/// Sums over the samples of a batch, as the last stage saw them.
struct StepResult {
  double loss_sum = 0;  ///< sum over `count` of the loss
  int64_t correct = 0;
  int64_t count = 0;
};

/// A batch on its way through the stages. `inputs` is read by the first stage, `targets` by the last.
struct StepInput {
  at::Tensor inputs;   ///< [B, ...]
  at::Tensor targets;  ///< [B]
  uint64_t step = 0;   ///< optimizer steps taken before this batch

  /// In training, the samples' indices in the training set; for links that keep something a sample.
  std::vector<int64_t> ids = {};
  std::vector<int64_t> next_ids = {};  ///< of the batch after this one, where they are known
};

/// Runs plans: every action in order, with boundaries and transport between the stages. The one place
/// where a schedule meets tensors; it knows no schedule by name.
class Executor {
 public:
  struct Setup {
    std::vector<Stage> stages;         ///< in pipeline order
    std::vector<Boundary> boundaries;  ///< one fewer than stages
    /// Shape of one sample at each boundary, without the batch dimension.
    std::vector<std::vector<int64_t>> sample_shapes;
    PipelineOptions options;
    int64_t batch_size = 1;  ///< rows of a full batch; fixes the rows of a micro-batch
    uint64_t seed = 0;
  };

  /// Runs all stages in this process, one after another.
  Executor(Setup setup, Transport& transport);

  /// Forward and backward over the batch: adds the gradients of the batch's mean loss to the parameters.
  /// Throws NumericError for a message or a loss that is not finite.
  StepResult train(const StepInput& batch, bool compressed);

  /// Forward only; changes no state of any link.
  StepResult evaluate(const StepInput& batch, bool compressed);

  std::vector<Boundary>& boundaries() { return boundaries_; }

 private:
  struct Run;
  const Plan& plan_for(uint32_t micro_batches, bool training);
  StepResult execute(const StepInput& batch, MessageMode mode);
  void perform(const Action& action, Run& run);
  void forward(const Action& action, Run& run);
  void backward(const Action& action, Run& run);
  void send(const Action& action, Run& run);
  void receive(const Action& action, Run& run);

  std::vector<Stage> stages_;
  std::vector<Boundary> boundaries_;
  std::vector<std::vector<int64_t>> sample_shapes_;
  PipelineOptions options_;
  int64_t micro_rows_;
  uint64_t seed_;
  Transport& transport_;
  std::map<std::pair<uint32_t, bool>, Plan> plans_;
};

}  // namespace strait
