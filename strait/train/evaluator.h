#pragma once

#include <map>
#include <memory>

#include "strait/train/observer.h"
#include "strait/train/placed_executor.h"
#include "strait/train/weight_update.h"
#include "strait/transport/stop_agreement.h"

namespace strait {

/// Scores every sample of a data set with compression off and on, and changes neither weights nor state.
class Evaluator {
 public:
  /// All of them must outlive it.
  Evaluator(Placement& placement, PlacedExecutor& executor, DataParallel& data_parallel,
            const TrainerOptions& options)
      : placement_(placement), executor_(executor), data_parallel_(data_parallel), options_(options) {}

  /// The sums that this process knows, in each mode that there is; of processes that do not have the last stage
  /// of the first replica, zero.
  struct Sums {
    std::map<EvaluationMode, StepResult> by_mode;  ///< off and plain at least
    bool stopped = false;                          ///< somebody asked to stop: these are not all samples
  };

  /// A pass over the data in each mode; see Trainer::evaluate(). `stop` counts its batches as steps; `epoch` is
  /// for the observer. Leaves the model in evaluation mode. Collective.
  Sums score(const std::shared_ptr<const Dataset>& data, TrainObserver& observer, StopAgreement& stop,
             int epoch, bool knows_state = true);

 private:
  StepResult pass(const std::shared_ptr<const Dataset>& data, EvaluationMode mode, TrainObserver& observer,
                  StopAgreement& stop, int epoch, bool& stopped);

  Placement& placement_;
  PlacedExecutor& executor_;
  DataParallel& data_parallel_;
  const TrainerOptions& options_;
};

}  // namespace strait
