#include "strait/train/trainer.h"

#include <numeric>

#include "strait/base/clock.h"
#include "strait/train/optimizer.h"
#include "strait/train/runtime.h"
#include "strait/train/store_budget.h"

namespace strait {
namespace {

StepInput step_input(const Batch& batch, uint64_t step, at::Device device) {
  return {batch.inputs.to(device), batch.targets.to(device), step};
}

void add(StepResult& sum, const StepResult& part) {
  sum.loss_sum += part.loss_sum;
  sum.correct += part.correct;
  sum.count += part.count;
}

}  // namespace

Loss classification_loss(const at::Tensor& output, const at::Tensor& targets) {
  return {torch::nn::functional::cross_entropy(output, targets),
          output.detach().argmax(1).eq(targets).sum().item<int64_t>(), targets.size(0)};
}

Trainer::Trainer(Model model, TrainerOptions options)
    : model_(std::move(model)),
      options_(std::move(options)),
      device_(device_of(options_.train.device)),
      stages_(cut_into_stages(model_, options_.cuts)),
      executor_(make_executor()),
      optimizer_(make_optimizer(options_.train.optimizer, model_.parameters())) {}

Executor Trainer::make_executor() {
  model_.to(device_);
  Executor::Setup setup;
  setup.options = options_.pipeline;
  setup.batch_size = options_.batch_size;
  setup.seed = options_.seed;
  setup.sample_shapes = boundary_shapes(model_, stages_);
  for (size_t i = 0; i < stages_.size(); ++i) {
    const bool last = i + 1 == stages_.size();
    setup.stages.emplace_back(
        [this, range = stages_[i]](const at::Tensor& x) { return model_.forward(x, range.begin, range.end); },
        last ? LossFunction(classification_loss) : LossFunction(), i == 0);
    if (!last) {
      setup.boundaries.emplace_back(options_.cuts[i], static_cast<uint16_t>(i), options_.compression,
                                    Boundary::Local{});
    }
  }
  return Executor(std::move(setup), transport_);
}

bool Trainer::compresses_activations() const { return options_.compression.activations != LinkOptions{}; }

void Trainer::check_store(int64_t samples, TrainObserver& observer) {
  const StoreBudget budget(options_.compression, options_.cuts, boundary_shapes(model_, stages_), samples);
  if (budget.bytes() == 0) return;
  budget.check_fits(budget.free_bytes());
  observer.on_note(budget.describe());
}

bool Trainer::train(const DataSplits& data, TrainObserver& observer) {
  check_store(data.train->size(), observer);
  for (int epoch = 0; epoch < options_.train.epochs; ++epoch) {
    EpochMetrics metrics;
    metrics.epoch = epoch;
    if (!train_epoch(data.train, observer, metrics)) return false;
    const Stopwatch watch;
    metrics.test = evaluate(data.test, observer, epoch);
    metrics.evaluation_seconds = watch.seconds();
    if (observer.should_stop()) return false;
    observer.on_epoch(metrics);
  }
  return true;
}

bool Trainer::train_epoch(const std::shared_ptr<const Dataset>& data, TrainObserver& observer,
                          EpochMetrics& metrics) {
  const Stopwatch watch;
  metrics.lr = learning_rate(options_.train.schedule, options_.train.optimizer.lr, metrics.epoch);
  set_learning_rate(*optimizer_, metrics.lr);
  model_.train(true);
  Loader loader(data, {.order = epoch_order(options_.seed, metrics.epoch, data->size()),
                       .batch_size = options_.batch_size,
                       .augmentation_key = augmentation_key(options_.seed, metrics.epoch)});
  const bool compressed = metrics.epoch >= options_.compression.start_epoch;
  StepResult sums;
  while (auto batch = loader.next()) {
    if (observer.should_stop()) return false;
    optimizer_->zero_grad();
    StepInput input = step_input(*batch, step_, device_);
    input.ids = std::move(batch->ids);
    input.next_ids = loader.next_ids();
    add(sums, executor_.train(input, compressed));
    optimizer_->step();
    ++step_;
    ++metrics.steps;
    observer.on_batch(metrics.epoch, "train", sums.count, data->size(), score_of(sums).loss);
  }
  metrics.train = score_of(sums);
  metrics.seconds = watch.seconds();
  metrics.samples_per_second = static_cast<double>(sums.count) / metrics.seconds;
  metrics.data_wait_seconds = loader.waited_seconds();
  metrics.boundaries = take_traffic();
  return true;
}

Evaluation Trainer::evaluate(const std::shared_ptr<const Dataset>& data, TrainObserver& observer, int epoch) {
  model_.train(false);
  const StepResult off = evaluate_pass(data, false, observer, epoch);
  // Without an activation codec the second pass would compute the same numbers again.
  const StepResult on = compresses_activations() ? evaluate_pass(data, true, observer, epoch) : off;
  return {score_of(off), score_of(on), off.count};
}

StepResult Trainer::evaluate_pass(const std::shared_ptr<const Dataset>& data, bool compressed,
                                  TrainObserver& observer, int epoch) {
  std::vector<int64_t> order(static_cast<size_t>(data->size()));
  std::iota(order.begin(), order.end(), 0);
  Loader loader(data, {.order = std::move(order), .batch_size = options_.batch_size, .augmentation_key = {}});
  StepResult sums;
  uint64_t step = 0;
  while (auto batch = loader.next()) {
    if (observer.should_stop()) break;
    add(sums, executor_.evaluate(step_input(*batch, step++, device_), compressed));
    observer.on_batch(epoch, "test", sums.count, data->size(), score_of(sums).loss);
  }
  return sums;
}

std::vector<BoundaryTraffic> Trainer::take_traffic() {
  std::vector<BoundaryTraffic> all;
  for (auto& boundary : executor_.boundaries()) {
    BoundaryTraffic traffic;
    traffic.name = boundary.name;
    traffic.activations = boundary.activation_sender->take_traffic();
    traffic.activations += boundary.activation_receiver->take_traffic();
    traffic.gradients = boundary.gradient_sender->take_traffic();
    traffic.gradients += boundary.gradient_receiver->take_traffic();
    traffic.activation_diagnostics = boundary.activation_sender->take_diagnostics();
    traffic.gradient_diagnostics = boundary.gradient_sender->take_diagnostics();
    all.push_back(std::move(traffic));
  }
  return all;
}

}  // namespace strait
