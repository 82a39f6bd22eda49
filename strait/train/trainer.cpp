#include "strait/train/trainer.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

void Trainer::keep_checkpoints(CheckpointFolder folder, std::string config) {
  checkpoints_ = std::move(folder);
  config_ = std::move(config);
}

void Trainer::resume(const Checkpoint& from) {
  from.load_weights(model_);
  from.load_optimizer(*optimizer_, model_);
  from.load_links(executor_.boundaries());
  from.load_random();
  position_ = from.record().position;
  clear_gradients();
}

void Trainer::warm_start(const Checkpoint& from, bool with_optimizer) {
  from.load_weights(model_);
  if (with_optimizer) from.load_optimizer(*optimizer_, model_);
  if (from.record().seed == options_.seed) from.load_random();
  position_ = from.record().position;
  clear_gradients();
}

// As a step leaves them: a gradient is then added to zero, which makes +0 of -0, where none would be replaced.
void Trainer::clear_gradients() {
  if (position_.step == 0) return;
  for (const auto& parameter : model_.parameters()) parameter.mutable_grad() = torch::zeros_like(parameter);
}

void Trainer::save_checkpoint() {
  if (!checkpoints_) return;
  add_traffic(position_.traffic, take_traffic());
  checkpoints_->add({position_.epoch, position_.batches}, [&](const std::filesystem::path& folder) {
    write_checkpoint(folder, model_, *optimizer_, executor_.boundaries(),
                     {.position = position_, .seed = options_.seed, .config = config_, .checksums = {}});
  });
}

bool Trainer::train(const DataSplits& data, TrainObserver& observer) {
  check_store(data.train->size(), observer);
  if (checkpoints_ && position_.batches == 0 && checkpoints_->keeps(position_.epoch)) save_checkpoint();
  while (position_.epoch < options_.train.epochs) {
    const bool finished = run_epoch(data, observer);
    const bool last = position_.epoch == options_.train.epochs;
    if (!finished || last || (checkpoints_ && checkpoints_->is_due_before(position_.epoch))) save_checkpoint();
    if (!finished) return false;
  }
  return true;
}

bool Trainer::run_epoch(const DataSplits& data, TrainObserver& observer) {
  if (!train_epoch(data.train, observer)) return false;
  EpochMetrics metrics = epoch_metrics();
  const Stopwatch watch;
  metrics.test = evaluate(data.test, observer, position_.epoch);
  metrics.evaluation_seconds = watch.seconds();
  if (observer.should_stop()) return false;
  observer.on_epoch(metrics);
  const Position ended = std::exchange(position_, {});
  position_.epoch = ended.epoch + 1;
  position_.step = ended.step;
  return true;
}

bool Trainer::train_epoch(const std::shared_ptr<const Dataset>& data, TrainObserver& observer) {
  Stopwatch watch;
  set_learning_rate(*optimizer_,
                    learning_rate(options_.train.schedule, options_.train.optimizer.lr, position_.epoch));
  model_.train(true);
  auto order = epoch_order(options_.seed, position_.epoch, data->size());
  order.erase(order.begin(), order.begin() + std::min(position_.batches * options_.batch_size, data->size()));
  Loader loader(data, {.order = std::move(order),
                       .batch_size = options_.batch_size,
                       .augmentation_key = augmentation_key(options_.seed, position_.epoch)});
  const bool compressed = position_.epoch >= options_.compression.start_epoch;
  const double waited_before = position_.data_wait_seconds;
  while (auto batch = loader.next()) {
    if (observer.should_stop()) return false;
    optimizer_->zero_grad();
    StepInput input = step_input(*batch, position_.step, device_);
    input.ids = std::move(batch->ids);
    input.next_ids = loader.next_ids();
    add(position_.sums, executor_.train(input, compressed));
    optimizer_->step();
    ++position_.step;
    ++position_.batches;
    position_.data_wait_seconds = waited_before + loader.waited_seconds();
    position_.seconds += watch.seconds();
    observer.on_batch(position_.epoch, "train", position_.sums.count, data->size(),
                      score_of(position_.sums).loss);
    if (checkpoints_ && checkpoints_->is_due_after(position_.step)) save_checkpoint();
    watch = Stopwatch();
  }
  return true;
}

EpochMetrics Trainer::epoch_metrics() {
  add_traffic(position_.traffic, take_traffic());
  for (auto& boundary : executor_.boundaries()) {
    BoundaryTraffic& traffic = *std::ranges::find(position_.traffic, boundary.name, &BoundaryTraffic::name);
    traffic.activation_diagnostics = boundary.activation_sender->take_diagnostics();
    traffic.gradient_diagnostics = boundary.gradient_sender->take_diagnostics();
  }
  return {.epoch = position_.epoch,
          .steps = position_.batches,
          .train = score_of(position_.sums),
          .test = {},
          .lr = learning_rate(options_.train.schedule, options_.train.optimizer.lr, position_.epoch),
          .seconds = position_.seconds,
          .samples_per_second = static_cast<double>(position_.sums.count) / position_.seconds,
          .evaluation_seconds = 0,
          .data_wait_seconds = position_.data_wait_seconds,
          .boundaries = position_.traffic};
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
    all.push_back(std::move(traffic));
  }
  return all;
}

}  // namespace strait
