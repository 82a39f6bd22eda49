#include "strait/train/evaluator.h"

#include <ATen/core/ivalue.h>

#include <numeric>
#include <utility>

#include "strait/data/loader.h"

namespace strait {

// A pass that would compute the same numbers again is left out: without an activation codec all but the first,
// and the live one where nothing moves.
Evaluator::Sums Evaluator::score(const std::shared_ptr<const Dataset>& data, TrainObserver& observer,
                                 StopAgreement& stop, int epoch, bool knows_state) {
  using enum EvaluationMode;
  placement_.model().train(false);
  Sums sums;
  const auto run = [&](EvaluationMode mode) {
    return sums.stopped ? StepResult() : pass(data, mode, observer, stop, epoch, sums.stopped);
  };
  const CompressionOptions& compression = options_.compression;
  const bool rows = keeps_rows(compression, options_.cuts);
  auto& of = sums.by_mode;
  of[off] = run(off);
  of[plain] = compresses_activations(compression, options_.cuts) ? run(plain) : of[off];
  if (rows ? !knows_state : !has_feedback(compression, options_.cuts)) return sums;
  of[frozen] = run(frozen);
  if (rows) {
    HeldState held(executor_->boundaries());
    of[live] = run(live);
    held.put_back();
  } else {
    of[live] = of[frozen];
  }
  return sums;
}

StepResult Evaluator::pass(const std::shared_ptr<const Dataset>& data, EvaluationMode mode,
                           TrainObserver& observer, StopAgreement& stop, int epoch, bool& stopped) {
  std::vector<int64_t> order(static_cast<size_t>(data->size()));
  std::iota(order.begin(), order.end(), 0);
  const bool scores = placement_.replica() == 0;
  Loader loader(data, {.order = std::move(order),
                       .batch_size = options_.batch_size,
                       .augmentation_key = {},
                       .ids_only = !scores || !placement_.reads_data()});
  StepResult sums;
  uint64_t step = 0;
  int64_t done = 0;
  while (auto batch = loader.next()) {
    StepInput input = executor_.input_of(*batch, step++);
    input.ids.clear();  // of the test set
    input.classes.clear();
    stop.begin_step(observer.should_stop());
    if (scores) sums += executor_->evaluate(input, mode);
    done += input.rows;
    observer.on_batch(epoch, "test", done, data->size(), mean_loss(sums));
    data_parallel_.wait_for_first();
    stopped = stop.is_last_step();
    if (stopped) break;
  }
  return sums;
}

}  // namespace strait
