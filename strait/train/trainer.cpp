#include "strait/train/trainer.h"

#include <ATen/core/ivalue.h>

#include <algorithm>
#include <utility>

#include "strait/base/clock.h"
#include "strait/base/host.h"
#include "strait/base/multiples.h"
#include "strait/base/text.h"
#include "strait/data/batch_parts.h"
#include "strait/data/loader.h"
#include "strait/run/metrics_json.h"
#include "strait/train/rank_statistics.h"
#include "strait/train/store_budget.h"

namespace strait {
namespace {

void check_samples(int64_t samples, int replicas) {
  if (samples >= replicas) return;
  throw InputError("pipeline.replicas: expected at most {}, the samples of the training set, found {}", samples,
                   replicas);
}

void check_warmup(const TrainOptions& train, int64_t all_steps) {
  const auto& schedule = train.schedule;
  if (!rate_schedule_kind(schedule.kind).has_warmup || schedule.warmup_steps <= all_steps) return;
  throw InputError("train.schedule.warmup_steps: expected at most {}, the steps of the training, found {}",
                   all_steps, schedule.warmup_steps);
}

/// An endpoint in this process needs a store; both endpoints share one.
StoreBudget store_budget(Placement& placement, const CompressionOptions& compression, int64_t samples) {
  std::vector<std::string> boundaries;
  std::vector<std::vector<int64_t>> shapes;
  const auto all_shapes = placement.boundary_shapes();
  for (size_t i = 0; i < all_shapes.size(); ++i) {
    if (!placement.is_here(i) && !placement.is_here(i + 1)) continue;
    boundaries.push_back(placement.cuts()[i]);
    shapes.push_back(all_shapes[i]);
  }
  return {compression, boundaries, shapes, samples};
}

/// Of this number in all processes on this machine. Collective.
uint64_t sum_on_this_machine(Group& group, uint64_t mine) {
  const std::string machine = machine_mark() + " ";
  uint64_t sum = 0;
  for (const std::string& one : group.gather(machine + std::to_string(mine))) {
    if (one.starts_with(machine)) sum += std::stoull(one.substr(machine.size()));
  }
  return sum;
}

/// Codecs are chosen for boundaries by name: one that has none would keep the strongest until the next choice.
void check_cuts_of_choices(const TrainingState& state, const std::vector<std::string>& cuts,
                           const std::filesystem::path& from) {
  if (state.choices.empty()) return;
  std::vector<std::string> chosen;
  for (const auto& codecs : state.choices.back().boundaries) chosen.push_back(codecs.boundary);
  if (std::ranges::is_permutation(chosen, cuts)) return;
  throw InputError(
      "{}: has codecs that were chosen for the boundaries {}, which is not what model.cuts has now ({}); a run "
      "with codec \"{}\" resumes only with its own cuts",
      from.string(), list_of(chosen), cuts.empty() ? "none" : list_of(cuts), kAutoCodec);
}

/// Without a codec that is chosen: with the strongest instead.
TrainerOptions with_codecs(TrainerOptions options) {
  options.compression = with_strongest_codecs(std::move(options.compression));
  return options;
}

}  // namespace

Trainer::Trainer(Model model, TrainerOptions options, std::shared_ptr<Group> group, Trace* trace)
    : asked_(options.compression),
      options_(with_codecs(std::move(options))),
      placement_(std::move(model), options_.cuts, options_.pipeline, std::move(group)),
      executor_(placement_, options_, trace),
      update_(placement_, options_),
      evaluator_(placement_, executor_, update_.data_parallel(), options_),
      recorder_(placement_, *executor_, update_.data_parallel(), options_, trace),
      step_log_(placement_, options_),
      checkpoints_(placement_, *executor_, update_, options_.seed) {
  check_micro_batch_steps(options_.train, options_.pipeline);
  check_previous(options_.compression, options_.cuts);
  if (chooses_codecs(asked_) && !options_.cuts.empty()) {
    automatic_codecs_.emplace(*executor_, placement_, asked_, options_.choose_codecs,
                              options_.links_are_no_limit);
  }
  if (!steps_per_micro_batch(weight_versions(options_.pipeline.schedule))) return;
  micro_batch_update_.emplace(placement_, update_, options_);
}

StepPlan Trainer::plan_for(const DataSplits& data) const {
  return {data.train->size(), options_.batch_size, options_.train, options_.pipeline};
}

// Counted from the epoch, because a training may begin with another one's checkpoint and count of steps.
SchedulePoint Trainer::point_at(const StepPlan& plan, int64_t step_of_epoch) const {
  return {.epoch = state_.epoch,
          .step = state_.epoch * plan.steps() + step_of_epoch,
          .all_steps = options_.train.epochs * plan.steps()};
}

void Trainer::check(const DataSplits& data) {
  const int64_t samples = data.train->size();
  check_samples(samples, options_.pipeline.replicas);
  if (keeps_classes(options_.compression, options_.cuts)) expect_classes(*data.train);
  check_warmup(options_.train, options_.train.epochs * plan_for(data).steps());
}

void Trainer::check_stores(int64_t samples) {
  const StoreBudget budget = store_budget(placement_, options_.compression, samples);
  const uint64_t together = sum_on_this_machine(placement_.group(), budget.bytes());
  run_collectively(placement_.group(), [&] {
    if (budget.bytes() > 0) budget.check_fits(budget.free_bytes(), together - budget.bytes());
  });
}

void Trainer::resume(const Checkpoint& from) {
  is_resumed_ = true;
  state_ = from.state();
  check_cuts_of_choices(state_, options_.cuts, from.folder());
  const int start = options_.compression.start_epoch;
  checkpoints_.resume(from, state_.epoch < start || (state_.epoch == start && state_.batches == 0));
  std::erase_if(state_.stages, [&](const auto& stage) {  // of other cuts, which say nothing of those to come
    const auto& [number, name] = stage.first;
    return static_cast<size_t>(number) >= placement_.stages().size() ||
           placement_.stage_name(static_cast<size_t>(number)) != name;
  });
  metrics_ = from.record().metrics;
}

void Trainer::warm_start(const Checkpoint& from, bool with_optimizer) {
  checkpoints_.warm_start(from, with_optimizer);
  state_ = from.state();
  state_.choices.clear();  // of another run's links
  state_.layers.clear();
}

void Trainer::save_checkpoint() {
  drain();
  if (checkpoints_.folder() == nullptr) return;
  recorder_.take_in(state_);
  if (automatic_codecs_) automatic_codecs_->take_in(state_);
  checkpoints_.write(state_, metrics_);
}

bool Trainer::train(const DataSplits& data, TrainObserver& observer) {
  run_collectively(placement_.group(), [&] { check(data); });
  if (!is_resumed_) check_stores(data.train->size());  // else the stores are here, with what they need
  stop_.emplace(placement_.group());
  const StoreBudget budget = store_budget(placement_, options_.compression, data.train->size());
  if (budget.bytes() > 0) observer.on_note(budget.describe());
  if (automatic_codecs_) automatic_codecs_->begin(state_);
  const CheckpointFolder* kept = checkpoints_.folder();
  if (kept != nullptr && state_.batches == 0 && kept->keeps(state_.epoch)) save_checkpoint();
  while (state_.epoch < options_.train.epochs) {
    const bool finished = run_epoch(data, observer);
    const bool last = state_.epoch == options_.train.epochs;
    if (!finished || last || (kept != nullptr && kept->is_due_before(state_.epoch))) save_checkpoint();
    if (!finished) return false;
  }
  return true;
}

bool Trainer::run_epoch(const DataSplits& data, TrainObserver& observer) {
  if (state_.batches == 0) AutomaticCodecs::begin_epoch(state_);
  if (!train_epoch(data, observer)) return false;
  RankStatistics mine = recorder_.statistics(state_);
  step_log_.end_epoch(state_);
  const Stopwatch watch;
  const StepPlan plan = plan_for(data);
  if (is_evaluation_due_after_epoch(plan)) {
    auto [sums, stopped] = evaluator_.score(data.test, observer, *stop_, state_.epoch);
    if (stopped) return false;
    mine.test = std::move(sums);
  }
  const RankStatistics all = gather(placement_.group(), mine);
  check_ends_agree(all.feedback_state);
  EpochMetrics metrics =
      recorder_.epoch_metrics(all, state_, plan.steps_of(state_.batches), update_.rate(point_at(plan, 0)));
  if (is_evaluation_due(plan)) metrics.evaluations.push_back({state_.step, metrics.test.value()});
  metrics.evaluation_seconds = state_.evaluation_seconds + watch.seconds();
  metrics.choices = AutomaticCodecs::of_epoch(state_);
  if (options_.over_networks) {
    // Of an epoch that was trained in other stages, up to its last batch, there are not all times.
    metrics.networks = metrics.stages.size() < placement_.stages().size()
                           ? networks_so_far()
                           : options_.over_networks(metrics, networks_so_far());
  }
  metrics_.push_back(to_line(metrics));
  observer.on_epoch(metrics);
  TrainingState ended = std::exchange(state_, {});
  state_.epoch = ended.epoch + 1;
  state_.step = ended.step;
  state_.choices = std::move(ended.choices);  // with the last step's, by which a checkpoint of now is scored
  return true;
}

std::vector<NetworkMetrics> Trainer::networks_so_far() const {
  return metrics_.empty() ? std::vector<NetworkMetrics>()
                          : parse_epoch(metrics_.back(), "the epoch before").networks;
}

// A link that keeps something a sample must see the sample whenever it is trained with. So each replica then
// has the samples that it had in the first epoch.
std::vector<int64_t> Trainer::order_of_epoch(int64_t samples) const {
  auto order = epoch_order(options_.seed, state_.epoch, samples);
  const int replicas = options_.pipeline.replicas;
  if (replicas == 1 || !keeps_samples(options_.compression, options_.cuts)) return order;
  return order_with_parts_of(epoch_order(options_.seed, 0, samples), order, options_.batch_size, replicas);
}

/// The epoch's batches from one on.
Loader Trainer::load(const DataSplits& data, int64_t first) const {
  const int replica = placement_.replica();
  const int replicas = options_.pipeline.replicas;
  const int64_t samples = data.train->size();
  auto order = order_of_epoch(samples);
  order.erase(order.begin(), order.begin() + std::min(first * options_.batch_size, samples));
  return {data.train,
          {.order = part_of_order(order, options_.batch_size, replica, replicas),
           .batch_size = part_of_batch(options_.batch_size, replica, replicas).rows,
           .augmentation_key = augmentation_key(options_.seed, state_.epoch),
           .ids_only = !placement_.reads_data()}};
}

bool Trainer::train_epoch(const DataSplits& data, TrainObserver& observer) {
  if (!evaluate_if_due(data, observer)) return false;  // the training was stopped before it was done
  Stopwatch watch;
  placement_.model().train(true);
  const int64_t samples = data.train->size();
  const StepPlan plan = plan_for(data);
  Loader loader = load(data, state_.batches);
  if (micro_batch_update_) micro_batch_update_->start(point_at(plan, plan.steps_of(state_.batches)));
  const double waited_before = state_.data_wait_seconds;
  recorder_.take_in(state_);
  step_log_.begin(state_);
  while (auto batch = loader.next()) {
    const StepPlan::Part part = plan.part(state_.batches, placement_.replica());
    stop_->begin_step(observer.should_stop());
    const StepInput input = input_of(*batch, part, loader.next_ids());
    if (automatic_codecs_) {
      begin_codecs(input, observer);
      automatic_codecs_->before_batch(state_, part.ends ? part.steps : 0, plan.batches(),
                                      options_.train.epochs);
    }
    train_batch(input, plan);
    if (automatic_codecs_) choose_codecs(observer);
    state_.data_wait_seconds = waited_before + loader.waited_seconds();
    state_.seconds += watch.seconds();
    observer.on_batch(state_.epoch, "train", std::min(state_.batches * options_.batch_size, samples), samples,
                      mean_loss(state_.sums));
    if (step_log_.is_due(state_, part.ends ? static_cast<uint64_t>(part.steps) : 0)) log_steps(plan, observer);
    if (part.ends && stop_->is_last_step()) return false;
    const CheckpointFolder* kept = checkpoints_.folder();
    const auto steps = static_cast<uint64_t>(part.steps);
    if (part.ends && kept != nullptr && kept->is_due_after(state_.step, steps)) save_checkpoint();
    if (part.ends && !evaluate_if_due(data, observer)) return false;
    watch = Stopwatch();
  }
  drain();
  return true;
}

StepInput Trainer::input_of(Batch& batch, const StepPlan::Part& part, std::vector<int64_t> next_ids) const {
  StepInput input = executor_.input_of(batch, state_.step);
  input.next_ids = std::move(next_ids);
  if (micro_batch_update_) return input;
  input.all_rows = part.all_rows;
  input.first_row = part.first_row;
  return input;
}

/// Where it is due.
void Trainer::begin_codecs(const StepInput& batch, TrainObserver& observer) {
  if (!automatic_codecs_->is_starting()) return;
  automatic_codecs_->start(state_, batch);
  observer.on_note(describe(state_.choices.back()));
}

/// Where it is due. The time counts as the batch's.
void Trainer::choose_codecs(TrainObserver& observer) {
  const bool is_due = automatic_codecs_->is_due();
  if (!is_due && !automatic_codecs_->is_warming_up()) return;
  if (is_due && micro_batch_update_) executor_->drain(*micro_batch_update_);
  recorder_.take_in(state_);
  if (!is_due) {
    automatic_codecs_->warmed_up(state_);
    return;
  }
  const std::string before = describe(state_.choices.back());
  automatic_codecs_->choose(state_);
  const std::string now = describe(state_.choices.back());
  if (now != before) observer.on_note(now);
}

void Trainer::log_steps(const StepPlan& plan, TrainObserver& observer) {
  recorder_.take_in(state_);
  observer.on_steps(step_log_.take(state_, update_.rate(point_at(plan, plan.steps_of(state_.batches) - 1))));
}

/// Adds the batch to the sums of the epoch, and makes the steps that end with it.
void Trainer::train_batch(const StepInput& batch, const StepPlan& plan) {
  const StepPlan::Part part = plan.part(state_.batches, placement_.replica());
  const bool compressed = options_.compression.is_on_in(state_.epoch);
  if (micro_batch_update_) {
    state_.sums += executor_->stream(batch, compressed, *micro_batch_update_);
  } else {
    if (part.begins) update_.begin();
    update_.run_previous(state_.step, compressed,
                         [&] { executor_->train(batch, compressed, /*diagnosed=*/false); });
    state_.sums += executor_->train(batch, compressed);
    if (part.ends)
      update_.finish(state_.step, point_at(plan, plan.steps_of(state_.batches + 1) - 1), compressed);
  }
  ++state_.batches;
  state_.step += static_cast<uint64_t>(part.steps);
}

/// Brings all stages to the same step, where a schedule lets them be at different ones.
void Trainer::drain() {
  if (!micro_batch_update_) return;
  const Stopwatch watch;
  executor_->drain(*micro_batch_update_);
  state_.seconds += watch.seconds();
}

/// Whether the last batch has ended a step after which an evaluation is due.
bool Trainer::is_evaluation_due(const StepPlan& plan) const {
  const auto every = static_cast<uint64_t>(options_.train.evaluate_every);
  if (state_.batches == 0) return false;
  if (!passes_multiple(every, state_.step, static_cast<uint64_t>(plan.part(state_.batches - 1, 0).steps)))
    return false;
  return state_.evaluations.empty() || state_.evaluations.back().step != state_.step;
}

bool Trainer::is_evaluation_due_after_epoch(const StepPlan& plan) const {
  const int done = state_.epoch + 1;
  const auto& train = options_.train;
  return done == train.epochs || done % train.evaluate_epochs == 0 || is_evaluation_due(plan);
}

// Between two steps, and not behind the epoch's last, which the epoch's own evaluation follows.
bool Trainer::evaluate_if_due(const DataSplits& data, TrainObserver& observer) {
  const StepPlan plan = plan_for(data);
  if (!is_evaluation_due(plan) || plan.is_done(state_.batches)) return true;
  drain();
  const Stopwatch watch;
  RankStatistics mine;
  auto [sums, stopped] = evaluator_.score(data.test, observer, *stop_, state_.epoch);
  if (stopped) return false;
  mine.test = std::move(sums);
  placement_.model().train(true);
  state_.evaluations.push_back({state_.step, recorder_.evaluation_of(gather(placement_.group(), mine))});
  state_.evaluation_seconds += watch.seconds();
  observer.on_evaluation(state_.evaluations.back());
  return true;
}

Evaluation Trainer::evaluate(const std::shared_ptr<const Dataset>& data, TrainObserver& observer,
                             bool knows_state, int replicas) {
  executor_->set_batch_size(part_of_batch(options_.batch_size, 0, replicas).rows);
  RankStatistics mine;
  stop_.emplace(placement_.group());
  mine.test = evaluator_.score(data, observer, *stop_, -1, knows_state).by_mode;
  return recorder_.evaluation_of(gather(placement_.group(), mine));
}

}  // namespace strait
