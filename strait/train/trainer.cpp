#include "strait/train/trainer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "strait/base/clock.h"
#include "strait/data/batch_parts.h"
#include "strait/pipeline/schedules.h"
#include "strait/train/optimizer.h"
#include "strait/train/precision.h"
#include "strait/train/runtime.h"
#include "strait/train/store_budget.h"

namespace strait {
namespace {

StepInput step_input(Batch& batch, uint64_t step, at::Device device) {
  const auto there = [&](const at::Tensor& x) { return x.defined() ? x.to(device) : x; };
  StepInput input{there(batch.inputs), there(batch.targets), step, static_cast<int64_t>(batch.ids.size())};
  input.ids = std::move(batch.ids);
  return input;
}

/// The rank of each stage, as in the plans: one after another, and round again.
std::vector<int> place_stages(size_t stages, const Group& group) {
  std::vector<int> ranks;
  for (size_t i = 0; i < stages; ++i) ranks.push_back(static_cast<int>(i) % group.size());
  return ranks;
}

/// The layers of the stages of one rank.
Model layers_of(const Model& model, const std::vector<LayerRange>& stages,
                const std::vector<int>& rank_of_stage, int rank) {
  Model own{{}, model.sample_shape};
  for (size_t i = 0; i < stages.size(); ++i) {
    if (rank_of_stage[i] != rank) continue;
    const Model stage = model.part(stages[i]);
    own.layers.insert(own.layers.end(), stage.layers.begin(), stage.layers.end());
  }
  return own;
}

/// The samples of an epoch that are trained with: a last batch with fewer than replicas is left out.
int64_t trained_samples(int64_t samples, int64_t batch_size, int replicas) {
  const int64_t rest = samples % batch_size;
  return rest < replicas ? samples - rest : samples;
}

int64_t ceil_of(int64_t count, int64_t parts) { return (count + parts - 1) / parts; }

std::shared_ptr<Group> own_pipeline(const std::shared_ptr<Group>& group, const TrainerOptions& options) {
  check_process_count(static_cast<int>(options.cuts.size()) + 1, options.pipeline, group->size());
  return pipeline_of(group, {group->rank(), group->size(), options.pipeline.replicas});
}

}  // namespace

Trainer::Trainer(Model model, TrainerOptions options, std::shared_ptr<Group> group, Trace* trace)
    : model_(std::move(model)),
      options_(std::move(options)),
      group_(std::move(group)),
      pipeline_(own_pipeline(group_, options_)),
      trace_(trace),
      device_(device_of(options_.train.device)),
      stages_(cut_into_stages(model_, options_.cuts)),
      rank_of_stage_(place_stages(stages_.size(), *pipeline_)),
      own_(layers_of(model_, stages_, rank_of_stage_, pipeline_->rank())),
      executor_(make_executor()),
      replicas_(make_replicas()),
      gradients_(model_, stages_, rank_of_stage_, *pipeline_),
      optimizer_(make_optimizer(options_.train.optimizer, own_.parameters())) {}

Executor Trainer::make_executor() {
  check_precision(options_.train.precision, device_);
  model_.to(device_);
  const int rank = pipeline_->rank();
  Executor::Setup setup;
  setup.stage_count = static_cast<int>(stages_.size());
  setup.rank = rank;
  setup.ranks = pipeline_->size();
  setup.options = options_.pipeline;
  setup.batch_size = part_of_batch(options_.batch_size, place().replica(), options_.pipeline.replicas).rows;
  setup.seed = options_.seed;
  setup.sample_shapes = boundary_shapes(model_, stages_);
  setup.device = device_;
  std::vector<int> peers;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const bool last = i + 1 == stages_.size();
    const bool here = rank_of_stage_[i] == rank;
    if (here) {
      setup.stages.try_emplace(static_cast<int>(i),
                               forward_of(model_, stages_[i], options_.train.precision, device_.type()),
                               last ? loss_of_data(options_.is_text) : LossFunction(), i == 0);
    }
    if (last) break;
    const bool below = rank_of_stage_[i + 1] == rank;
    setup.boundaries.emplace_back(options_.cuts[i], static_cast<uint16_t>(i), options_.compression,
                                  Boundary::Local{.upstream = here, .downstream = below});
    peers.push_back(here ? rank_of_stage_[i + 1] : below ? rank_of_stage_[i] : -1);
  }
  transport_ = pipeline_->make_transport(std::move(peers), options_.cuts);
  return Executor(std::move(setup), *transport_, trace_);
}

Replicas Trainer::make_replicas() {
  std::vector<Replicas::Stage> own;
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (rank_of_stage_[i] != pipeline_->rank()) continue;
    own.push_back({static_cast<int>(i), stage_name(i), model_.part(stages_[i]).parameters()});
  }
  return {
      *group_,      place(), static_cast<int>(stages_.size()), std::move(own), options_.compression.replicas,
      options_.seed};
}

std::string Trainer::stage_name(size_t stage) const {
  const LayerRange& range = stages_[stage];
  return fmt::format("{}..{}", model_.layers[range.begin].name, model_.layers[range.end - 1].name);
}

bool Trainer::compresses_activations() const { return options_.compression.activations != LinkOptions{}; }

void Trainer::check_samples(int64_t samples) const {
  if (samples >= options_.pipeline.replicas) return;
  throw InputError("pipeline.replicas: expected at most {}, the samples of the training set, found {}", samples,
                   options_.pipeline.replicas);
}

int64_t Trainer::steps_of(int64_t batches) const { return ceil_of(batches, options_.train.accumulate); }

void Trainer::plan_steps(int64_t samples) {
  const auto& schedule = options_.train.schedule;
  const int64_t trained = trained_samples(samples, options_.batch_size, options_.pipeline.replicas);
  epoch_steps_ = steps_of(ceil_of(trained, options_.batch_size));
  const int64_t all = options_.train.epochs * epoch_steps_;
  if (schedule.kind != "linear" || schedule.warmup_steps <= all) return;
  throw InputError("train.schedule.warmup_steps: expected at most {}, the steps of the training, found {}", all,
                   schedule.warmup_steps);
}

// Counted from the epoch, because a training may begin with another one's checkpoint and count of steps.
double Trainer::learning_rate_at(int64_t step_of_epoch) const {
  return learning_rate(options_.train.schedule, options_.train.optimizer.lr,
                       {.epoch = position_.epoch,
                        .step = position_.epoch * epoch_steps_ + step_of_epoch,
                        .all_steps = options_.train.epochs * epoch_steps_});
}

Trainer::StepPart Trainer::part_of_step(int64_t batch, int64_t samples) const {
  const int replicas = options_.pipeline.replicas;
  const int64_t size = options_.batch_size;
  const int64_t trained = trained_samples(samples, size, replicas);
  const int64_t first = batch - batch % options_.train.accumulate;
  const int64_t end = std::min((first + options_.train.accumulate) * size, trained);
  const int64_t rows = std::min(size, trained - batch * size);
  return {.first_row = (batch - first) * size + part_of_batch(rows, place().replica(), replicas).first_row,
          .all_rows = end - first * size,
          .begins = batch == first,
          .ends = batch * size + rows == end};
}

void Trainer::check_store(int64_t samples, TrainObserver& observer) {
  // An end in this process needs a store; both ends share one.
  std::vector<std::string> boundaries;
  std::vector<std::vector<int64_t>> shapes;
  const auto all_shapes = boundary_shapes(model_, stages_);
  for (size_t i = 0; i < all_shapes.size(); ++i) {
    if (rank_of_stage_[i] != pipeline_->rank() && rank_of_stage_[i + 1] != pipeline_->rank()) continue;
    boundaries.push_back(options_.cuts[i]);
    shapes.push_back(all_shapes[i]);
  }
  const StoreBudget budget(options_.compression, boundaries, shapes, samples);
  if (budget.bytes() == 0) return;
  budget.check_fits(budget.free_bytes());
  observer.on_note(budget.describe());
}

void Trainer::keep_checkpoints(CheckpointFolder folder, std::string config) {
  checkpoints_ = std::move(folder);
  config_ = std::move(config);
}

void Trainer::resume(const Checkpoint& from) {
  from.load_weights(own_, is_alone());
  from.load_optimizer(*optimizer_, own_, is_alone());
  from.load_links(executor_.boundaries(), replicas_, is_alone());
  from.load_random();
  position_ = from.position();
  clear_gradients();
}

void Trainer::warm_start(const Checkpoint& from, bool with_optimizer) {
  from.load_weights(own_, is_alone());
  if (with_optimizer) from.load_optimizer(*optimizer_, own_, is_alone());
  if (from.record().seed == options_.seed) from.load_random();
  position_ = from.position();
  clear_gradients();
}

// As a step leaves them: a gradient is then added to zero, which makes +0 of -0, where none would be replaced.
void Trainer::clear_gradients() {
  if (position_.step == 0) return;
  for (const auto& parameter : own_.parameters()) parameter.mutable_grad() = torch::zeros_like(parameter);
}

// A checkpoint has its name only once every process has written its part, and the one before stays until every
// part has its name: so there is always one that all processes have.
void Trainer::save_checkpoint() {
  if (!checkpoints_) return;
  add_traffic(position_.traffic, take_traffic());
  const CheckpointFolder::Entry entry{position_.epoch, position_.batches};
  together(*group_, [&] {
    checkpoints_->write(entry, [&](const std::filesystem::path& folder) {
      write_checkpoint(
          folder, own_, *optimizer_, executor_.boundaries(), replicas_,
          {.position = position_, .place = place(), .seed = options_.seed, .config = config_, .checksums = {}});
    });
  });
  together(*group_, [&] { checkpoints_->publish(entry); });
  checkpoints_->prune();
}

bool Trainer::train(const DataSplits& data, TrainObserver& observer) {
  together(*group_, [&] {
    check_samples(data.train->size());
    check_store(data.train->size(), observer);
    plan_steps(data.train->size());
  });
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
  Contribution mine = contribution();
  const Stopwatch watch;
  evaluate_passes(data.test, observer, position_.epoch, mine);
  if (stopped_) return false;
  const Contribution all = gather(*group_, mine);
  check_ends_agree(all.feedback_state);
  EpochMetrics metrics = epoch_metrics(all);
  metrics.evaluation_seconds = watch.seconds();
  observer.on_epoch(metrics);
  const Position ended = std::exchange(position_, {});
  position_.epoch = ended.epoch + 1;
  position_.step = ended.step;
  return true;
}

// A link that keeps something a sample must see the sample whenever it is trained with. So each replica then
// has the samples that it had in the first epoch.
std::vector<int64_t> Trainer::order_of_epoch(int64_t samples) const {
  auto order = epoch_order(options_.seed, position_.epoch, samples);
  const int replicas = options_.pipeline.replicas;
  if (replicas == 1 || !keeps_samples(options_.compression)) return order;
  return order_with_parts_of(epoch_order(options_.seed, 0, samples), order, options_.batch_size, replicas);
}

bool Trainer::train_epoch(const std::shared_ptr<const Dataset>& data, TrainObserver& observer) {
  Stopwatch watch;
  model_.train(true);
  const int replica = place().replica();
  const int replicas = options_.pipeline.replicas;
  auto order = order_of_epoch(data->size());
  order.erase(order.begin(), order.begin() + std::min(position_.batches * options_.batch_size, data->size()));
  Loader loader = load(data, {.order = part_of_order(order, options_.batch_size, replica, replicas),
                              .batch_size = part_of_batch(options_.batch_size, replica, replicas).rows,
                              .augmentation_key = augmentation_key(options_.seed, position_.epoch)});
  const bool compressed = position_.epoch >= options_.compression.start_epoch;
  const double waited_before = position_.data_wait_seconds;
  bool stops = false;
  while (auto batch = loader.next()) {
    const StepPart part = part_of_step(position_.batches, data->size());
    if (part.begins) optimizer_->zero_grad();
    StepInput input = step_input(*batch, position_.step, device_);
    input.next_ids = loader.next_ids();
    input.all_rows = part.all_rows;
    input.first_row = part.first_row;
    input.stops = observer.should_stop();
    const StepResult result = executor_.train(input, compressed);
    position_.sums += result;
    stops |= result.stops;
    ++position_.batches;
    if (part.ends) stops = finish_step(compressed, stops);
    position_.data_wait_seconds = waited_before + loader.waited_seconds();
    const double seconds = watch.seconds();
    position_.seconds += seconds;
    measured_seconds_ += seconds;
    observer.on_batch(position_.epoch, "train", std::min(position_.batches * options_.batch_size, data->size()),
                      data->size(), score_of(position_.sums).loss);
    if (part.ends && stops) return false;
    if (part.ends && checkpoints_ && checkpoints_->is_due_after(position_.step)) save_checkpoint();
    watch = Stopwatch();
  }
  return true;
}

bool Trainer::finish_step(bool compressed, bool stops) {
  stops = replicas_.sum_gradients(position_.step, {.training = true, .compressed = compressed, .stops = stops});
  gradients_.sum_ties();
  if (options_.train.clip_norm > 0) gradients_.clip(options_.train.clip_norm);
  set_learning_rate(*optimizer_, learning_rate_at(steps_of(position_.batches) - 1));
  optimizer_->step();
  ++position_.step;
  return stops;
}

Contribution Trainer::contribution() {
  add_traffic(position_.traffic, take_traffic());
  Contribution mine{.train = position_.sums,
                    .off = {},
                    .on = {},
                    .boundaries = position_.traffic,
                    .stages = executor_.take_times(),
                    .feedback_state = {},
                    .weights = {},
                    .seconds = position_.seconds,
                    .data_wait_seconds = position_.data_wait_seconds,
                    .measured_seconds = std::exchange(measured_seconds_, 0)};
  if (!is_alone()) mine.feedback_state = feedback_state_of(executor_.boundaries(), place().replica());
  mine.weights = replicas_.weight_checksums();
  for (auto& boundary : executor_.boundaries()) {
    BoundaryTraffic& traffic = *std::ranges::find(mine.boundaries, boundary.name, &BoundaryTraffic::name);
    if (boundary.activation_sender)
      traffic.activation_diagnostics = boundary.activation_sender->take_diagnostics();
    if (boundary.gradient_sender) traffic.gradient_diagnostics = boundary.gradient_sender->take_diagnostics();
  }
  return mine;
}

EpochMetrics Trainer::epoch_metrics(const Contribution& all) const {
  EpochMetrics metrics{.epoch = position_.epoch,
                       .steps = steps_of(position_.batches),
                       .train = score_of(all.train, options_.is_text),
                       .test = evaluation_of(all),
                       .lr = learning_rate_at(0),
                       .seconds = all.seconds,
                       .samples_per_second = static_cast<double>(all.train.rows) / all.seconds,
                       .tokens_per_second = {},
                       .evaluation_seconds = 0,
                       .data_wait_seconds = all.data_wait_seconds,
                       .bubble_share = bubble_share(all, pipeline_->size()),
                       .boundaries = all.boundaries,
                       .stages = {}};
  if (options_.is_text) metrics.tokens_per_second = static_cast<double>(all.train.count) / all.seconds;
  for (const auto& [number, times] : all.stages) {
    const auto count = static_cast<double>(times.micro_batches);
    metrics.stages.push_back({stage_name(static_cast<size_t>(number)), times.forward_seconds / count,
                              times.backward_seconds / count});
  }
  return metrics;
}

Evaluation Trainer::evaluate(const std::shared_ptr<const Dataset>& data, TrainObserver& observer) {
  Contribution mine;
  evaluate_passes(data, observer, -1, mine);
  const Contribution all = gather(*group_, mine);
  return evaluation_of(all);
}

Evaluation Trainer::evaluation_of(const Contribution& all) const {
  return {score_of(all.off, options_.is_text), score_of(all.on, options_.is_text), all.off.rows};
}

void Trainer::evaluate_passes(const std::shared_ptr<const Dataset>& data, TrainObserver& observer, int epoch,
                              Contribution& scores) {
  stopped_ = false;
  model_.train(false);
  scores.off = evaluate_pass(data, false, observer, epoch);
  // Without an activation codec the second pass would compute the same numbers again.
  scores.on = scores.off;
  if (compresses_activations() && !stopped_) scores.on = evaluate_pass(data, true, observer, epoch);
}

StepResult Trainer::evaluate_pass(const std::shared_ptr<const Dataset>& data, bool compressed,
                                  TrainObserver& observer, int epoch) {
  std::vector<int64_t> order(static_cast<size_t>(data->size()));
  std::iota(order.begin(), order.end(), 0);
  const bool scores = place().replica() == 0;
  Loader loader = load(data, {.order = std::move(order),
                              .batch_size = options_.batch_size,
                              .augmentation_key = {},
                              .ids_only = !scores});
  StepResult sums;
  uint64_t step = 0;
  int64_t done = 0;
  while (auto batch = loader.next()) {
    StepInput input = step_input(*batch, step++, device_);
    input.stops = observer.should_stop();
    const StepResult result = scores ? executor_.evaluate(input, compressed) : StepResult();
    sums += result;
    done += input.rows;
    observer.on_batch(epoch, "test", done, data->size(), score_of(sums).loss);
    stopped_ = replicas_.first_says(result.stops);
    if (stopped_) break;
  }
  return sums;
}

Loader Trainer::load(const std::shared_ptr<const Dataset>& data, Loader::Pass pass) const {
  const int rank = pipeline_->rank();
  pass.ids_only |= rank_of_stage_.front() != rank && rank_of_stage_.back() != rank;
  return {data, std::move(pass)};
}

const Model& Trainer::collect_model() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const int owner = rank_of_stage_[i];
    if (owner == 0 || (owner != pipeline_->rank() && pipeline_->rank() != 0)) continue;
    for (const auto& [name, value] : model_.part(stages_[i]).state()) {
      const std::string what = "weights of " + name;
      at::Tensor here = value.detach().to(at::kCPU).contiguous();
      if (pipeline_->rank() == owner) {
        pipeline_->send(here, 0, what);
      } else {
        pipeline_->receive(here, owner, what);
        const torch::NoGradGuard no_grad;
        value.copy_(here);
      }
    }
  }
  return model_;
}

std::vector<BoundaryTraffic> Trainer::take_traffic() {
  std::vector<BoundaryTraffic> all;
  for (auto& boundary : executor_.boundaries()) {
    BoundaryTraffic traffic;
    traffic.name = boundary.name;
    const auto take = [](auto& end, Traffic& sum) {
      if (end) sum += end->take_traffic();
    };
    take(boundary.activation_sender, traffic.activations);
    take(boundary.activation_receiver, traffic.activations);
    take(boundary.gradient_sender, traffic.gradients);
    take(boundary.gradient_receiver, traffic.gradients);
    all.push_back(std::move(traffic));
  }
  add_traffic(all, replicas_.take_traffic());
  return all;
}

}  // namespace strait
