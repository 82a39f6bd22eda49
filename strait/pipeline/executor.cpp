#include "strait/pipeline/executor.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "strait/base/rng_scope.h"
#include "strait/base/text.h"
#include "strait/pipeline/overlapped_exchange.h"
#include "strait/pipeline/simulate.h"
#include "strait/pipeline/validate.h"

namespace strait {

/// What is between two actions of a plan.
struct Executor::Run {
  using Key = std::pair<int, int>;  // stage, micro-batch

  WeightSteps* weights;                      ///< null where the weights stay as they are
  std::map<Key, TensorList> inputs = {};     ///< received, not consumed yet
  std::map<Key, TensorList> outputs = {};    ///< made, not sent yet
  std::map<Key, TensorList> gradients = {};  ///< of a stage's output: received, not consumed yet
  std::map<Key, TensorList> returned = {};   ///< of a stage's input: made, not sent yet
  StepResult result = {};
};

namespace {

TensorList take(std::map<std::pair<int, int>, TensorList>& from, const Action& action) {
  auto node = from.extract({action.stage, action.micro_batch});
  STRAIT_CHECK(!node.empty(), "nothing is there for stage {}, micro-batch {}", action.stage,
               action.micro_batch);
  return std::move(node.mapped());
}

void record(const Loss& loss, const MicroBatch& part, StepResult& result) {
  const double mean = loss.mean.item<double>();
  if (!std::isfinite(mean) && !part.mode.trial) {
    throw NumericError("the loss is not finite at {} {}", part.mode.training ? "step" : "test batch",
                       part.context.step);
  }
  result.loss_sum += mean * static_cast<double>(loss.count);
  result.correct += loss.correct;
  result.count += loss.count;
  result.rows += part.rows;
}

int64_t rows_of_micro_batch(const Executor::Setup& setup) {
  return (setup.batch_size + setup.micro_batches - 1) / setup.micro_batches;
}

void prefetch(std::vector<BoundaryEndpoints>& boundaries, const std::vector<int64_t>& ids) {
  for (BoundaryEndpoints& boundary : boundaries) boundary.prefetch(ids);
}

}  // namespace

Executor::Executor(Setup setup, Transport& transport, Trace* trace)
    : setup_(std::move(setup)), trace_(trace), micro_batches_(rows_of_micro_batch(setup_), setup_.seed) {
  if (setup_.tensors_at_cut.empty()) setup_.tensors_at_cut.assign(setup_.boundaries.size(), 1);
  first_boundary_.push_back(0);
  for (const int tensors : setup_.tensors_at_cut) first_boundary_.push_back(first_boundary_.back() + tensors);
  STRAIT_CHECK(!setup_.stages.empty() && first_boundary_.size() == static_cast<size_t>(setup_.stage_count) &&
                   static_cast<size_t>(first_boundary_.back()) == setup_.boundaries.size() &&
                   setup_.sample_shapes.size() == setup_.boundaries.size(),
               "{} stages, {} boundaries, {} shapes", setup_.stage_count, setup_.boundaries.size(),
               setup_.sample_shapes.size());
  set_crossing(std::move(setup_.sample_shapes), std::move(setup_.gradients));
  if (setup_.ranks == 1) {
    exchange_ = std::make_unique<LocalExchange>(setup_.boundaries, transport, trace);
  } else {
    exchange_ = std::make_unique<OverlappedExchange>(setup_.boundaries, transport, trace, setup_.device);
  }
}

void Executor::set_crossing(std::vector<std::vector<int64_t>> sample_shapes, std::vector<bool> gradients) {
  setup_.sample_shapes = std::move(sample_shapes);
  setup_.gradients = std::move(gradients);
  for (auto& [number, stage] : setup_.stages) {
    stage.set_gradients(gradients_at(number - 1), gradients_at(number));
  }
}

bool Executor::has_gradient(int boundary) const {
  return !carries_integers(boundary) &&
         (setup_.gradients.empty() || setup_.gradients.at(static_cast<size_t>(boundary)));
}

/// Of each tensor that crosses the cut; of none before the first stage and behind the last.
std::vector<bool> Executor::gradients_at(int cut) const {
  std::vector<bool> all;
  if (cut < 0 || cut + 1 >= setup_.stage_count) return all;
  const auto at = static_cast<size_t>(cut);
  for (int boundary = first_boundary_[at]; boundary < first_boundary_[at + 1]; ++boundary) {
    all.push_back(has_gradient(boundary));
  }
  return all;
}

void Executor::set_batch_size(int64_t rows) {
  setup_.batch_size = rows;
  micro_batches_.set_rows(rows_of_micro_batch(setup_));
}

StepResult Executor::train(const StepInput& batch, bool compressed, bool diagnosed) {
  STRAIT_CHECK(!steps_per_micro_batch(setup_.schedule.weight_versions()), "schedule {} steps by itself",
               setup_.schedule.name());
  if (compressed) prefetch(setup_.boundaries, batch.next_ids);
  return run_batch(Work::train, batch, {.training = true, .compressed = compressed, .diagnosed = diagnosed});
}

StepResult Executor::evaluate(const StepInput& batch, EvaluationMode mode) {
  return run_batch(Work::evaluate, batch,
                   {.training = false, .compressed = mode != EvaluationMode::off, .evaluation = mode});
}

StepResult Executor::trial(const StepInput& batch) {
  return run_batch(Work::trial, batch, {.training = false, .diagnosed = false, .trial = true});
}

StepResult Executor::run_batch(Work work, const StepInput& batch, MessageMode mode) {
  STRAIT_CHECK(micro_batches_.count() == 0, "{} micro-batches are under way", micro_batches_.count());
  const int added = micro_batches_.add(batch, mode);
  const StepResult result = execute(work, 0, added, nullptr);
  micro_batches_.clear();
  return result;
}

StepResult Executor::stream(const StepInput& batch, bool compressed, WeightSteps& weights) {
  STRAIT_CHECK(steps_per_micro_batch(setup_.schedule.weight_versions()), "schedule {} steps after a batch",
               setup_.schedule.name());
  if (compressed) prefetch(setup_.boundaries, batch.next_ids);
  const int under_way = micro_batches_.count();
  const int added = micro_batches_.add_steps(batch, {.training = true, .compressed = compressed});
  const StepResult result = execute(Work::stream, under_way, added, &weights);
  micro_batches_.keep(setup_.stage_count - 1);
  return result;
}

void Executor::drain(WeightSteps& weights) {
  if (micro_batches_.count() == 0) return;
  execute(Work::drain, micro_batches_.count(), 0, &weights);
  micro_batches_.clear();
}

const Executor::StepPlan& Executor::plan_for(Work work, int under_way, int added) {
  const std::tuple key(work, under_way, added);
  const auto known = plans_.find(key);
  return known != plans_.end() ? known->second
                               : plans_.emplace(key, make_plan(work, under_way, added)).first->second;
}

// Where nothing waits for the end of a batch, the plan is that of a longer stream: of the micro-batches under
// way, those that are added, and one more. What each stage does until it takes in that one is the batch's part;
// what it does from then on, without that one, is left when the stream ends.
Executor::StepPlan Executor::make_plan(Work work, int under_way, int added) const {
  const bool streams = work == Work::stream || work == Work::drain;
  const int all = under_way + added;
  const ScheduleSize size{setup_.stage_count, streams ? all + 1 : all, setup_.stages_per_rank};
  const auto make = [&] {
    if (work == Work::evaluate) return forward_only(size.stages, all, size.stages_per_rank);
    return work == Work::trial ? interleaved(size) : setup_.schedule.plan(size);
  };
  const Plan compute = make();
  const Plan whole = setup_.ranks == 1 ? one_process(lower(compute)) : lower(compute);
  validate(whole, work == Work::evaluate ? Passes::forward_only : Passes::forward_backward);
  simulate(whole);  // proves that it is free of deadlock
  StepPlan plan;
  plan.actions = whole.ranks[static_cast<size_t>(setup_.rank)];
  if (work == Work::stream) plan.actions = window(plan.actions, under_way, all);
  if (work == Work::drain) {
    plan.actions = window(plan.actions, all, all + 1);
    std::erase_if(plan.actions, [&](const Action& action) { return action.micro_batch == all; });
  }
  std::ranges::copy_if(plan.actions, std::back_inserter(plan.expected),
                       [](const Action& action) { return is_receive(action.op); });
  return plan;
}

StepResult Executor::execute(Work work, int under_way, int added, WeightSteps* weights) {
  Run run{.weights = weights};
  add_passes();  // of the last time, which a device is through with by now
  const auto numbered = [&](Action action) {
    action.micro_batch = micro_batches_.number(action.micro_batch);
    return action;
  };
  try {
    const StepPlan& plan = plan_for(work, under_way, added);
    std::vector<MessageSlot> expected;
    for (const Action& action : plan.expected)
      std::ranges::move(slots_of(numbered(action)), std::back_inserter(expected));
    exchange_->begin(std::move(expected));
    for (const Action& action : plan.actions) perform(numbered(action), run);
    exchange_->finish();
  } catch (...) {
    exchange_->cancel();
    for (auto& [number, stage] : setup_.stages) stage.clear();
    micro_batches_.clear();
    passes_.clear();
    throw;
  }
  return run.result;
}

void Executor::perform(const Action& action, Run& run) {
  const auto in_stage = [&](const char* what, void (Executor::*pass)(const Action&, Run&)) {
    try {
      (this->*pass)(action, run);
    } catch (const c10::Error& error) {  // LibTorch's and the device's, such as one that is out of memory
      throw Error("stage {}, {} of micro-batch {} on {}: {}", action.stage, what, action.micro_batch,
                  setup_.device.str(), first_line(error.what_without_backtrace()));
    }
  };
  switch (action.op) {
    case Op::forward:
      return in_stage("forward pass", &Executor::forward);
    case Op::backward:
      return in_stage("backward pass", &Executor::backward);
    case Op::send_activation:
    case Op::send_gradient:
      return in_stage("message", &Executor::send);
    case Op::recv_activation:
    case Op::recv_gradient:
      return in_stage("message", &Executor::receive);
  }
}

void Executor::forward(const Action& action, Run& run) {
  Stage& stage = setup_.stages.at(action.stage);
  const MicroBatch& part = micro_batches_.at(action.micro_batch);
  const auto micro_batch = static_cast<uint32_t>(action.micro_batch);
  const TensorList input = action.stage == 0 ? part.inputs() : take(run.inputs, action);
  const TensorList extras = part.extras();
  const TraceSpan span(trace_, Lane::forward, "stage", action.stage, action.micro_batch);
  const RngScope draws(part.draws);
  const auto begin = DeviceMoment::behind_all(setup_.device);
  const auto pass = [&] {
    const bool goes_back = part.mode.has_gradients();
    if (stage.is_last()) {
      record(goes_back ? stage.forward_loss(micro_batch, input, part.targets(), extras)
                       : stage.infer_loss(input, part.targets(), extras),
             part, run.result);
      return;
    }
    TensorList outputs = goes_back ? stage.forward(micro_batch, input, extras) : stage.infer(input, extras);
    check_outputs(action, outputs);
    run.outputs[{action.stage, action.micro_batch}] = std::move(outputs);
  };
  run.weights == nullptr ? pass() : run.weights->forward(action.stage, pass);
  if (!part.mode.training) return;
  passes_.push_back(
      {action.stage, &StageTimes::forward_seconds, begin, DeviceMoment::behind_all(setup_.device)});
}

void Executor::backward(const Action& action, Run& run) {
  Stage& stage = setup_.stages.at(action.stage);
  const MicroBatch& part = micro_batches_.at(action.micro_batch);
  const TensorList gradients =
      stage.is_last()
          ? TensorList{at::full({}, part.weight, at::TensorOptions(at::kFloat).device(setup_.device))}
          : take(run.gradients, action);
  const TraceSpan span(trace_, Lane::backward, "stage", action.stage, action.micro_batch);
  const auto pass = [&] {
    const auto begin = DeviceMoment::behind_all(setup_.device);
    TensorList returned = stage.backward(static_cast<uint32_t>(action.micro_batch), gradients);
    if (action.stage > 0) run.returned[{action.stage, action.micro_batch}] = std::move(returned);
    if (!part.mode.training) return;
    passes_.push_back(
        {action.stage, &StageTimes::backward_seconds, begin, DeviceMoment::behind_all(setup_.device)});
    times_[action.stage].micro_batches += 1;
  };
  run.weights == nullptr ? pass() : run.weights->backward(action.stage, pass);
}

void Executor::add_passes() {
  for (const Pass& pass : std::exchange(passes_, {})) {
    try {
      times_[pass.stage].*pass.sum += pass.begin.seconds_until(pass.end);
    } catch (const c10::Error& error) {  // of what the device did meanwhile
      throw Error("stage {} on {}: {}", pass.stage, setup_.device.str(),
                  first_line(error.what_without_backtrace()));
    }
  }
}

std::map<int, StageTimes> Executor::take_times() {
  add_passes();
  return std::exchange(times_, {});
}

std::vector<MessageSlot> Executor::slots_of(const Action& action) const {
  const MicroBatch& part = micro_batches_.at(action.micro_batch);
  const auto cut = static_cast<size_t>(boundary_of(action));
  std::vector<MessageSlot> slots;
  const Direction direction = direction_of(action.op);
  for (int boundary = first_boundary_[cut]; boundary < first_boundary_[cut + 1]; ++boundary) {
    if (direction == Direction::gradient && !has_gradient(boundary)) continue;
    MessageMeta meta{{part.rows}};
    const auto& sample = setup_.sample_shapes[static_cast<size_t>(boundary)];
    meta.shape.insert(meta.shape.end(), sample.begin(), sample.end());
    slots.push_back({boundary, direction, part.context, part.mode, std::move(meta)});
    slots.back().context.device = setup_.device;
  }
  return slots;
}

bool Executor::carries_integers(int boundary) const {
  return setup_.boundaries[static_cast<size_t>(boundary)].activations.link->carries_integers();
}

// What the receiver takes for granted.
void Executor::check_outputs(const Action& action, const TensorList& outputs) const {
  const auto first = static_cast<size_t>(first_boundary_[static_cast<size_t>(action.stage)]);
  const auto count = static_cast<size_t>(setup_.tensors_at_cut[static_cast<size_t>(action.stage)]);
  if (outputs.size() != count) {
    throw InputError("stage {} gives {} tensors, expected {}", action.stage, outputs.size(), count);
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> expected = {micro_batches_.at(action.micro_batch).rows};
    const auto& sample = setup_.sample_shapes[first + i];
    expected.insert(expected.end(), sample.begin(), sample.end());
    const bool integers = carries_integers(static_cast<int>(first + i));
    const auto type = integers ? at::kLong : at::kFloat;
    if (outputs[i].sizes() == at::IntArrayRef(expected) && outputs[i].scalar_type() == type) continue;
    throw InputError("boundary {}: stage {} gives {} {}, expected {} {}", setup_.boundaries[first + i].name,
                     action.stage, c10::toString(outputs[i].scalar_type()), shape_text(outputs[i].sizes()),
                     integers ? "int64" : "float32", shape_text(expected));
  }
}

void Executor::send(const Action& action, Run& run) {
  const bool forward = action.op == Op::send_activation;
  TensorList tensors = take(forward ? run.outputs : run.returned, action);
  const auto slots = slots_of(action);
  for (size_t i = 0; i < slots.size(); ++i) exchange_->send(slots[i], std::move(tensors[i]));
}

void Executor::receive(const Action& action, Run& run) {
  const bool forward = action.op == Op::recv_activation;
  TensorList tensors;
  for (const auto& slot : slots_of(action)) {
    tensors.push_back(exchange_->receive(slot));
  }
  (forward ? run.inputs : run.gradients)[{action.stage, action.micro_batch}] = std::move(tensors);
}

}  // namespace strait
