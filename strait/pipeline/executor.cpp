#include "strait/pipeline/executor.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "strait/base/clock.h"
#include "strait/base/random.h"
#include "strait/base/rng_scope.h"
#include "strait/base/text.h"
#include "strait/pipeline/overlapped_exchange.h"
#include "strait/pipeline/simulate.h"

namespace strait {

/// One pass of a batch through the plan.
struct Executor::Run {
  using Key = std::pair<int, int>;  // stage, micro-batch

  const StepInput& batch;
  MessageMode mode;
  int64_t micro_rows;
  uint64_t seed;
  std::map<Key, TensorList> inputs = {};     ///< received, not consumed yet
  std::map<Key, TensorList> outputs = {};    ///< made, not sent yet
  std::map<Key, TensorList> gradients = {};  ///< of a stage's output: received, not consumed yet
  std::map<Key, TensorList> returned = {};   ///< of a stage's input: made, not sent yet
  StepResult result = {};

  int64_t rows() const { return batch.rows; }
  int64_t all_rows() const { return batch.all_rows > 0 ? batch.all_rows : batch.rows; }
  int64_t first_row(int micro_batch) const { return micro_batch * micro_rows; }
  int64_t rows_of(int micro_batch) const { return std::min(micro_rows, rows() - first_row(micro_batch)); }

  at::Tensor part(const at::Tensor& whole, int micro_batch) const {
    return whole.narrow(0, first_row(micro_batch), rows_of(micro_batch));
  }
  TensorList part(const TensorList& whole, int micro_batch) const {
    TensorList parts;
    for (const auto& tensor : whole) parts.push_back(part(tensor, micro_batch));
    return parts;
  }

  MessageContext context(int micro_batch) const {
    MessageContext context;
    // Its rows count from the part's first, so the part has draws of its own through the seed.
    context.seed = batch.first_row == 0 ? seed : make_key(seed, batch.first_row);
    context.step = batch.step;
    context.micro_batch = static_cast<uint32_t>(micro_batch);
    context.first_row = static_cast<size_t>(first_row(micro_batch));
    if (!batch.ids.empty()) {
      context.ids = std::span(batch.ids).subspan(context.first_row, static_cast<size_t>(rows_of(micro_batch)));
    }
    return context;
  }
};

namespace {

TensorList take(std::map<std::pair<int, int>, TensorList>& from, const Action& action) {
  auto node = from.extract({action.stage, action.micro_batch});
  STRAIT_CHECK(!node.empty(), "nothing is there for stage {}, micro-batch {}", action.stage,
               action.micro_batch);
  return std::move(node.mapped());
}

void record(const Loss& loss, int64_t rows, uint64_t step, StepResult& result) {
  const double mean = loss.mean.item<double>();
  if (!std::isfinite(mean)) throw NumericError("the loss is not finite at step {}", step);
  result.loss_sum += mean * static_cast<double>(loss.count);
  result.correct += loss.correct;
  result.count += loss.count;
  result.rows += rows;
}

}  // namespace

Executor::Executor(Setup setup, Transport& transport, Trace* trace)
    : setup_(std::move(setup)),
      micro_rows_((setup_.batch_size + setup_.micro_batches - 1) / setup_.micro_batches),
      trace_(trace) {
  if (setup_.tensors_at_cut.empty()) setup_.tensors_at_cut.assign(setup_.boundaries.size(), 1);
  first_boundary_.push_back(0);
  for (const int tensors : setup_.tensors_at_cut) first_boundary_.push_back(first_boundary_.back() + tensors);
  STRAIT_CHECK(!setup_.stages.empty() && first_boundary_.size() == static_cast<size_t>(setup_.stage_count) &&
                   static_cast<size_t>(first_boundary_.back()) == setup_.boundaries.size() &&
                   setup_.sample_shapes.size() == setup_.boundaries.size(),
               "{} stages, {} boundaries, {} shapes", setup_.stage_count, setup_.boundaries.size(),
               setup_.sample_shapes.size());
  if (setup_.ranks == 1) {
    exchange_ = std::make_unique<Exchange>(setup_.boundaries, transport, trace);
  } else {
    exchange_ = std::make_unique<OverlappedExchange>(setup_.boundaries, transport, trace);
  }
}

StepResult Executor::train(const StepInput& batch, bool compressed) {
  if (compressed) {
    for (BoundaryEndpoints& boundary : setup_.boundaries) boundary.prefetch(batch.next_ids);
  }
  return execute(batch, {.training = true, .compressed = compressed});
}

StepResult Executor::evaluate(const StepInput& batch, EvaluationMode mode) {
  return execute(batch, {.training = false, .compressed = mode != EvaluationMode::off, .evaluation = mode});
}

const Executor::StepPlan& Executor::plan_for(uint32_t micro_batches, bool training) {
  const auto [place, is_new] = plans_.try_emplace({micro_batches, training});
  if (!is_new) return place->second;
  const int parts = static_cast<int>(micro_batches);
  const ScheduleSize size{setup_.stage_count, parts, setup_.stages_per_rank};
  const Plan compute =
      training ? setup_.schedule.plan(size) : forward_only(size.stages, parts, size.stages_per_rank);
  const Plan whole = setup_.ranks == 1 ? one_process(lower(compute)) : lower(compute);
  simulate(whole);  // proves that it is in order and free of deadlock
  StepPlan& plan = place->second;
  plan.actions = whole.ranks[static_cast<size_t>(setup_.rank)];
  std::ranges::copy_if(plan.actions, std::back_inserter(plan.expected),
                       [](const Action& action) { return is_receive(action.op); });
  return plan;
}

StepResult Executor::execute(const StepInput& batch, MessageMode mode) {
  Run run{.batch = batch, .mode = mode, .micro_rows = micro_rows_, .seed = setup_.seed};
  STRAIT_CHECK(run.rows() > 0, "an empty batch");
  const auto parts = static_cast<uint32_t>((run.rows() + micro_rows_ - 1) / micro_rows_);
  try {
    const StepPlan& plan = plan_for(parts, mode.training);
    std::vector<MessageSlot> expected;
    for (const Action& action : plan.expected)
      std::ranges::move(slots_of(action, run), std::back_inserter(expected));
    exchange_->begin(std::move(expected));
    for (const Action& action : plan.actions) perform(action, run);
    exchange_->finish();
  } catch (...) {
    exchange_->cancel();
    for (auto& [number, stage] : setup_.stages) stage.clear();
    throw;
  }
  return run.result;
}

void Executor::perform(const Action& action, Run& run) {
  switch (action.op) {
    case Op::forward:
      return forward(action, run);
    case Op::backward:
      return backward(action, run);
    case Op::send_activation:
    case Op::send_gradient:
      return send(action, run);
    case Op::recv_activation:
    case Op::recv_gradient:
      return receive(action, run);
  }
}

void Executor::forward(const Action& action, Run& run) {
  Stage& stage = setup_.stages.at(action.stage);
  const auto micro_batch = static_cast<uint32_t>(action.micro_batch);
  const TensorList input =
      action.stage == 0 ? run.part(run.batch.inputs, action.micro_batch) : take(run.inputs, action);
  const TraceSpan span(trace_, Lane::forward, "stage", action.stage, action.micro_batch);
  const auto row = static_cast<size_t>(run.batch.first_row + run.first_row(action.micro_batch));
  const RngScope draws({run.seed, run.batch.step, row});
  const Stopwatch watch;
  if (!stage.is_last()) {
    TensorList outputs = run.mode.training ? stage.forward(micro_batch, input) : stage.infer(input);
    check_outputs(action, outputs, run);
    run.outputs[{action.stage, action.micro_batch}] = std::move(outputs);
  } else {
    const at::Tensor targets = run.part(run.batch.targets, action.micro_batch);
    record(
        run.mode.training ? stage.forward_loss(micro_batch, input, targets) : stage.infer_loss(input, targets),
        run.rows_of(action.micro_batch), run.batch.step, run.result);
  }
  if (run.mode.training) times_[action.stage].forward_seconds += watch.seconds();
}

void Executor::backward(const Action& action, Run& run) {
  Stage& stage = setup_.stages.at(action.stage);
  TensorList gradients;
  if (stage.is_last()) {
    const double weight =
        static_cast<double>(run.rows_of(action.micro_batch)) / static_cast<double>(run.all_rows());
    gradients = {at::full({}, weight, at::TensorOptions(at::kFloat).device(setup_.device))};
  } else {
    gradients = take(run.gradients, action);
  }
  const TraceSpan span(trace_, Lane::backward, "stage", action.stage, action.micro_batch);
  const Stopwatch watch;
  TensorList returned = stage.backward(static_cast<uint32_t>(action.micro_batch), gradients);
  if (action.stage > 0) run.returned[{action.stage, action.micro_batch}] = std::move(returned);
  StageTimes& times = times_[action.stage];
  times.backward_seconds += watch.seconds();
  times.micro_batches += 1;
}

std::vector<MessageSlot> Executor::slots_of(const Action& action, const Run& run) const {
  const auto cut = static_cast<size_t>(boundary_of(action));
  std::vector<MessageSlot> slots;
  for (int boundary = first_boundary_[cut]; boundary < first_boundary_[cut + 1]; ++boundary) {
    MessageMeta meta{{run.rows_of(action.micro_batch)}};
    const auto& sample = setup_.sample_shapes[static_cast<size_t>(boundary)];
    meta.shape.insert(meta.shape.end(), sample.begin(), sample.end());
    slots.push_back(
        {boundary, direction_of(action.op), run.context(action.micro_batch), run.mode, std::move(meta)});
  }
  return slots;
}

// What the receiver takes for granted.
void Executor::check_outputs(const Action& action, const TensorList& outputs, const Run& run) const {
  const auto first = static_cast<size_t>(first_boundary_[static_cast<size_t>(action.stage)]);
  const auto count = static_cast<size_t>(setup_.tensors_at_cut[static_cast<size_t>(action.stage)]);
  if (outputs.size() != count) {
    throw InputError("stage {} gives {} tensors, expected {}", action.stage, outputs.size(), count);
  }
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> expected = {run.rows_of(action.micro_batch)};
    const auto& sample = setup_.sample_shapes[first + i];
    expected.insert(expected.end(), sample.begin(), sample.end());
    if (outputs[i].sizes() == at::IntArrayRef(expected) && outputs[i].scalar_type() == at::kFloat) continue;
    throw InputError("boundary {}: stage {} gives {} {}, expected float32 {}",
                     setup_.boundaries[first + i].name, action.stage, c10::toString(outputs[i].scalar_type()),
                     shape_text(outputs[i].sizes()), shape_text(expected));
  }
}

void Executor::send(const Action& action, Run& run) {
  const bool forward = action.op == Op::send_activation;
  TensorList tensors = take(forward ? run.outputs : run.returned, action);
  const auto slots = slots_of(action, run);
  for (size_t i = 0; i < slots.size(); ++i) exchange_->send(slots[i], std::move(tensors[i]));
}

void Executor::receive(const Action& action, Run& run) {
  const bool forward = action.op == Op::recv_activation;
  TensorList tensors;
  for (const auto& slot : slots_of(action, run)) {
    tensors.push_back(exchange_->receive(slot).to(setup_.device));
  }
  (forward ? run.inputs : run.gradients)[{action.stage, action.micro_batch}] = std::move(tensors);
}

}  // namespace strait
