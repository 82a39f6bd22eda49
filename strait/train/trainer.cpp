#include "strait/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "strait/base/clock.h"
#include "strait/data/batch_parts.h"
#include "strait/formats/safetensors.h"
#include "strait/pipeline/schedules.h"
#include "strait/train/precision.h"
#include "strait/train/runtime.h"
#include "strait/train/store_budget.h"

namespace strait {
namespace {

StepInput step_input(Batch& batch, uint64_t step, at::Device device) {
  const auto there = [&](const at::Tensor& x) { return x.defined() ? x.to(device) : x; };
  StepInput input{{there(batch.inputs)}, there(batch.targets), step, static_cast<int64_t>(batch.ids.size())};
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
      data_parallel_(make_data_parallel()),
      gradients_(model_, stages_, rank_of_stage_, *pipeline_),
      optimizer_(options_.optimizer ? options_.optimizer(own_.parameters())
                                    : make_optimizer(options_.train.optimizer, own_.parameters())) {
  if (!options_.schedule) options_.schedule = make_rate_schedule(options_.train.schedule);
}

Executor Trainer::make_executor() {
  check_precision(options_.train.precision, device_);
  model_.to(device_);
  const int rank = pipeline_->rank();
  Executor::Setup setup;
  setup.stage_count = static_cast<int>(stages_.size());
  setup.rank = rank;
  setup.ranks = pipeline_->size();
  setup.schedule = options_.pipeline.schedule;
  setup.micro_batches = options_.pipeline.micro_batches;
  setup.stages_per_rank = options_.pipeline.stages_per_rank;
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
                               last ? options_.task.loss : LossFunction(), i == 0);
    }
    if (last) break;
    const bool below = rank_of_stage_[i + 1] == rank;
    setup.boundaries.emplace_back(
        options_.cuts[i], static_cast<uint16_t>(i), links_of(options_.compression, options_.cuts[i]),
        options_.compression.diagnostics, BoundaryEndpoints::Local{.upstream = here, .downstream = below});
    peers.push_back(here ? rank_of_stage_[i + 1] : below ? rank_of_stage_[i] : -1);
  }
  transport_ = pipeline_->make_transport(std::move(peers), options_.cuts);
  return Executor(std::move(setup), *transport_, trace_);
}

DataParallel Trainer::make_data_parallel() {
  std::vector<DataParallel::Stage> own;
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (rank_of_stage_[i] != pipeline_->rank()) continue;
    own.push_back({static_cast<int>(i), stage_name(i), model_.part(stages_[i]).parameters()});
  }
  const LinkOptions& link = options_.compression.replicas;
  return {*group_,
          place(),
          static_cast<int>(stages_.size()),
          std::move(own),
          make_link(link.codec, link.feedback),
          options_.seed};
}

std::string Trainer::stage_name(size_t stage) const {
  const LayerRange& range = stages_[stage];
  return fmt::format("{}..{}", model_.layers[range.begin].name, model_.layers[range.end - 1].name);
}

void Trainer::check_samples(int64_t samples) const {
  if (samples >= options_.pipeline.replicas) return;
  throw InputError("pipeline.replicas: expected at most {}, the samples of the training set, found {}", samples,
                   options_.pipeline.replicas);
}

int64_t Trainer::steps_of(int64_t batches) const { return ceil_of(batches, options_.train.accumulate); }

void Trainer::plan_steps(int64_t samples) {
  const auto& schedule = options_.train.schedule;
  epoch_steps_ =
      steps_of_pass(samples, options_.batch_size, options_.pipeline.replicas, options_.train.accumulate);
  const int64_t all = options_.train.epochs * epoch_steps_;
  if (!rate_schedule_kind(schedule.kind).has_warmup || schedule.warmup_steps <= all) return;
  throw InputError("train.schedule.warmup_steps: expected at most {}, the steps of the training, found {}", all,
                   schedule.warmup_steps);
}

// Counted from the epoch, because a training may begin with another one's checkpoint and count of steps.
double Trainer::learning_rate_at(int64_t step_of_epoch) const {
  return options_.train.optimizer.lr * options_.schedule({.epoch = state_.epoch,
                                                          .step = state_.epoch * epoch_steps_ + step_of_epoch,
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

StoreBudget Trainer::store_budget(int64_t samples) {
  // An endpoint in this process needs a store; both endpoints share one.
  std::vector<std::string> boundaries;
  std::vector<std::vector<int64_t>> shapes;
  const auto all_shapes = boundary_shapes(model_, stages_);
  for (size_t i = 0; i < all_shapes.size(); ++i) {
    if (rank_of_stage_[i] != pipeline_->rank() && rank_of_stage_[i + 1] != pipeline_->rank()) continue;
    boundaries.push_back(options_.cuts[i]);
    shapes.push_back(all_shapes[i]);
  }
  return {options_.compression, boundaries, shapes, samples};
}

void Trainer::check(const DataSplits& data) {
  const int64_t samples = data.train->size();
  check_samples(samples);
  plan_steps(samples);
  const StoreBudget budget = store_budget(samples);
  if (budget.bytes() > 0) budget.check_fits(budget.free_bytes());
}

void Trainer::keep_checkpoints(CheckpointWriter writer, std::string config) {
  checkpoints_ = std::move(writer);
  config_ = std::move(config);
}

void Trainer::resume(const Checkpoint& from) {
  from.load_weights(own_, is_alone());
  from.load_optimizer(*optimizer_, own_, is_alone());
  from.load_links(executor_.boundaries(), data_parallel_, is_alone());
  from.load_random();
  state_ = from.state();
  metrics_ = from.record().metrics;
  clear_gradients();
}

void Trainer::warm_start(const Checkpoint& from, bool with_optimizer) {
  from.load_weights(own_, is_alone());
  if (with_optimizer) from.load_optimizer(*optimizer_, own_, is_alone());
  if (from.record().seed == options_.seed) from.load_random();
  state_ = from.state();
  clear_gradients();
}

void Trainer::take_evaluation_state(const Checkpoint& from) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> here;
  for (const auto& [name, value] : own_.state()) here.push_back(value.clone());
  from.load_weights(own_, is_alone());
  std::string other;
  for (size_t i = 0; const auto& [name, value] : own_.state()) {
    if (!at::equal(here[i], value)) other = name;
    value.copy_(here[i++]);
  }
  if (!other.empty()) {
    throw InputError("{}: is of other weights: tensor {} differs", from.folder().string(), in_quotes(other));
  }
  if (!from.load_evaluation_state(executor_.boundaries())) {
    throw InputError("{}: has no feedback state of activations", from.folder().string());
  }
}

// As a step leaves them: a gradient is then added to zero, which makes +0 of -0, where none would be replaced.
void Trainer::clear_gradients() {
  if (state_.step == 0) return;
  for (const auto& parameter : own_.parameters()) parameter.mutable_grad() = at::zeros_like(parameter);
}

void Trainer::save_checkpoint() {
  if (!checkpoints_) return;
  take_in_measurements();
  checkpoints_->write(*group_, {state_.epoch, state_.batches}, [&](const std::filesystem::path& folder) {
    write_checkpoint(folder, own_, *optimizer_, executor_.boundaries(), data_parallel_,
                     {.state = state_,
                      .place = place(),
                      .seed = options_.seed,
                      .config = config_,
                      .metrics = metrics_,
                      .checksums = {}});
  });
}

bool Trainer::train(const DataSplits& data, TrainObserver& observer) {
  run_collectively(*group_, [&] { check(data); });
  stop_.emplace(*group_);
  const StoreBudget budget = store_budget(data.train->size());
  if (budget.bytes() > 0) observer.on_note(budget.describe());
  if (checkpoints_ && state_.batches == 0 && checkpoints_->own().keeps(state_.epoch)) save_checkpoint();
  while (state_.epoch < options_.train.epochs) {
    const bool finished = run_epoch(data, observer);
    const bool last = state_.epoch == options_.train.epochs;
    if (!finished || last || (checkpoints_ && checkpoints_->own().is_due_before(state_.epoch)))
      save_checkpoint();
    if (!finished) return false;
  }
  return true;
}

bool Trainer::run_epoch(const DataSplits& data, TrainObserver& observer) {
  if (!train_epoch(data, observer)) return false;
  RankStatistics mine = rank_statistics();
  const Stopwatch watch;
  mine.test = evaluate_passes(data.test, observer, state_.epoch, true);
  if (stopped_) return false;
  const RankStatistics all = gather(*group_, mine);
  check_ends_agree(all.feedback_state);
  EpochMetrics metrics = epoch_metrics(all);
  if (is_evaluation_due()) metrics.evaluations.push_back({state_.step, metrics.test});
  metrics.evaluation_seconds = state_.evaluation_seconds + watch.seconds();
  metrics_.push_back(to_line(metrics));
  observer.on_epoch(metrics);
  const TrainingState ended = std::exchange(state_, {});
  state_.epoch = ended.epoch + 1;
  state_.step = ended.step;
  return true;
}

// A link that keeps something a sample must see the sample whenever it is trained with. So each replica then
// has the samples that it had in the first epoch.
std::vector<int64_t> Trainer::order_of_epoch(int64_t samples) const {
  auto order = epoch_order(options_.seed, state_.epoch, samples);
  const int replicas = options_.pipeline.replicas;
  if (replicas == 1 || !keeps_samples(options_.compression, options_.cuts)) return order;
  return order_with_parts_of(epoch_order(options_.seed, 0, samples), order, options_.batch_size, replicas);
}

bool Trainer::train_epoch(const DataSplits& data, TrainObserver& observer) {
  if (!evaluate_if_due(data, observer)) return false;  // the training was stopped before it was done
  Stopwatch watch;
  model_.train(true);
  const int replica = place().replica();
  const int replicas = options_.pipeline.replicas;
  const int64_t samples = data.train->size();
  auto order = order_of_epoch(samples);
  order.erase(order.begin(), order.begin() + std::min(state_.batches * options_.batch_size, samples));
  Loader loader = load(data.train, {.order = part_of_order(order, options_.batch_size, replica, replicas),
                                    .batch_size = part_of_batch(options_.batch_size, replica, replicas).rows,
                                    .augmentation_key = augmentation_key(options_.seed, state_.epoch)});
  const bool compressed = state_.epoch >= options_.compression.start_epoch;
  const double waited_before = state_.data_wait_seconds;
  while (auto batch = loader.next()) {
    const StepPart part = part_of_step(state_.batches, samples);
    if (part.begins) optimizer_->zero_grad();
    StepInput input = step_input(*batch, state_.step, device_);
    input.next_ids = loader.next_ids();
    input.all_rows = part.all_rows;
    input.first_row = part.first_row;
    stop_->begin_step(observer.should_stop());
    state_.sums += executor_.train(input, compressed);
    ++state_.batches;
    if (part.ends) finish_step(compressed);
    state_.data_wait_seconds = waited_before + loader.waited_seconds();
    state_.seconds += watch.seconds();
    observer.on_batch(state_.epoch, "train", std::min(state_.batches * options_.batch_size, samples), samples,
                      mean_loss(state_.sums));
    if (part.ends && stop_->is_last_step()) return false;
    if (part.ends && checkpoints_ && checkpoints_->own().is_due_after(state_.step)) save_checkpoint();
    if (part.ends && !evaluate_if_due(data, observer)) return false;
    watch = Stopwatch();
  }
  return true;
}

bool Trainer::is_evaluation_due() const {
  const auto every = static_cast<uint64_t>(options_.train.evaluate_every);
  if (every == 0 || state_.batches == 0 || state_.step % every != 0) return false;
  return state_.evaluations.empty() || state_.evaluations.back().step != state_.step;
}

// Between two steps, and not behind the epoch's last, which the epoch's own evaluation follows.
bool Trainer::evaluate_if_due(const DataSplits& data, TrainObserver& observer) {
  const int64_t trained = trained_samples(data.train->size(), options_.batch_size, options_.pipeline.replicas);
  if (!is_evaluation_due() || state_.batches * options_.batch_size >= trained) return true;
  const Stopwatch watch;
  RankStatistics mine;
  mine.test = evaluate_passes(data.test, observer, state_.epoch, true);
  if (stopped_) return false;
  model_.train(true);
  state_.evaluations.push_back({state_.step, evaluation_of(gather(*group_, mine))});
  state_.evaluation_seconds += watch.seconds();
  observer.on_evaluation(state_.evaluations.back());
  return true;
}

void Trainer::finish_step(bool compressed) {
  data_parallel_.sum_gradients(state_.step, {.training = true, .compressed = compressed});
  gradients_.sum_ties();
  if (options_.train.clip_norm > 0) gradients_.clip(options_.train.clip_norm);
  optimizer_->set_learning_rate(learning_rate_at(steps_of(state_.batches) - 1));
  optimizer_->step();
  ++state_.step;
}

RankStatistics Trainer::rank_statistics() {
  take_in_measurements();
  RankStatistics mine{.train = state_.sums,
                      .test = {},
                      .boundaries = state_.traffic,
                      .stages = state_.stages,
                      .feedback_state = {},
                      .weights = {},
                      .seconds = state_.seconds,
                      .data_wait_seconds = state_.data_wait_seconds};
  if (!is_alone()) mine.feedback_state = feedback_state_of(executor_.boundaries(), place().replica());
  mine.weights = data_parallel_.weight_checksums();
  for (auto& boundary : executor_.boundaries()) {
    if (boundary.activation_sender) boundary.activation_sender->reset_diagnostics();
    if (boundary.gradient_sender) boundary.gradient_sender->reset_diagnostics();
  }
  return mine;
}

EpochMetrics Trainer::epoch_metrics(const RankStatistics& all) const {
  EpochMetrics metrics{.epoch = state_.epoch,
                       .steps = steps_of(state_.batches),
                       .train = score_of(all.train, options_.task),
                       .test = evaluation_of(all),
                       .lr = learning_rate_at(0),
                       .seconds = all.seconds,
                       .samples_per_second = static_cast<double>(all.train.rows) / all.seconds,
                       .tokens_per_second = {},
                       .evaluation_seconds = 0,
                       .data_wait_seconds = all.data_wait_seconds,
                       .bubble_share = bubble_share(all, pipeline_->size()),
                       .boundaries = all.boundaries,
                       .stages = {},
                       .evaluations = state_.evaluations};
  if (options_.task.throughput == Throughput::tokens) {
    metrics.tokens_per_second = static_cast<double>(all.train.count) / all.seconds;
  }
  for (const auto& [stage, times] : all.stages) {
    const auto count = static_cast<double>(times.micro_batches);
    metrics.stages.push_back({stage.second, times.forward_seconds / count, times.backward_seconds / count});
  }
  return metrics;
}

Evaluation Trainer::evaluate(const std::shared_ptr<const Dataset>& data, TrainObserver& observer,
                             bool knows_state) {
  stop_.emplace(*group_);
  RankStatistics mine;
  mine.test = evaluate_passes(data, observer, -1, knows_state);
  return evaluation_of(gather(*group_, mine));
}

Evaluation Trainer::evaluation_of(const RankStatistics& all) const {
  return strait::evaluation_of(all.test, evaluation_mode(options_.compression.evaluation), options_.task);
}

// A pass that would compute the same numbers again is left out: without an activation codec all but the first,
// and the live one where nothing moves.
std::map<EvaluationMode, StepResult> Trainer::evaluate_passes(const std::shared_ptr<const Dataset>& data,
                                                              TrainObserver& observer, int epoch,
                                                              bool knows_state) {
  stopped_ = false;
  model_.train(false);
  const auto pass = [&](EvaluationMode mode) {
    return stopped_ ? StepResult() : evaluate_pass(data, mode, observer, epoch);
  };
  const bool rows = keeps_rows(options_.compression, options_.cuts);
  std::map<EvaluationMode, StepResult> sums;
  sums[EvaluationMode::off] = pass(EvaluationMode::off);
  sums[EvaluationMode::plain] = compresses_activations(options_.compression, options_.cuts)
                                    ? pass(EvaluationMode::plain)
                                    : sums[EvaluationMode::off];
  if (rows ? !knows_state : !keeps_samples(options_.compression, options_.cuts)) return sums;
  sums[EvaluationMode::frozen] = pass(EvaluationMode::frozen);
  if (rows) {
    HeldState held(executor_.boundaries());
    sums[EvaluationMode::live] = pass(EvaluationMode::live);
    held.put_back();
  } else {
    sums[EvaluationMode::live] = sums[EvaluationMode::frozen];
  }
  return sums;
}

StepResult Trainer::evaluate_pass(const std::shared_ptr<const Dataset>& data, EvaluationMode mode,
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
    input.ids.clear();  // of the test set
    stop_->begin_step(observer.should_stop());
    if (scores) sums += executor_.evaluate(input, mode);
    done += input.rows;
    observer.on_batch(epoch, "test", done, data->size(), mean_loss(sums));
    data_parallel_.wait_for_first();
    stopped_ = stop_->is_last_step();
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
        const at::NoGradGuard no_grad;
        value.copy_(here);
      }
    }
  }
  return model_;
}

// Into the position, so that an epoch that is resumed, be it at its end, has the measurements of all its steps;
// diagnostics of those since the resume, where there are any.
void Trainer::take_in_measurements() {
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
    if (boundary.activation_sender) traffic.activation_diagnostics = boundary.activation_sender->diagnostics();
    if (boundary.gradient_sender) traffic.gradient_diagnostics = boundary.gradient_sender->diagnostics();
    all.push_back(std::move(traffic));
  }
  add_traffic(state_.traffic, all);
  if (auto traffic = data_parallel_.take_traffic()) {
    add_traffic(state_.traffic, {{.name = DataParallel::kName, .activations = {}, .gradients = *traffic}});
  }
  const auto times = executor_.take_times();
  if (place().replica() != 0) return;
  for (const auto& [number, stage] : times) {
    add_times(state_.stages, {{{number, stage_name(static_cast<size_t>(number))}, stage}});
  }
}

}  // namespace strait
