#include "strait/pipeline/executor.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "strait/pipeline/schedules.h"
#include "strait/pipeline/validate.h"

namespace strait {

/// One pass of a batch through the plan.
struct Executor::Run {
  using Key = std::pair<int, int>;  // stage, micro-batch

  const StepInput& batch;
  MessageMode mode;
  int64_t micro_rows;
  uint64_t seed;
  std::map<Key, at::Tensor> inputs = {};     ///< received, not consumed yet
  std::map<Key, at::Tensor> outputs = {};    ///< made, not sent yet
  std::map<Key, at::Tensor> gradients = {};  ///< of a stage's output: received, not consumed yet
  std::map<Key, at::Tensor> returned = {};   ///< of a stage's input: made, not sent yet
  StepResult result = {};

  int64_t rows() const { return batch.inputs.size(0); }
  int64_t first_row(int micro_batch) const { return micro_batch * micro_rows; }
  int64_t rows_of(int micro_batch) const { return std::min(micro_rows, rows() - first_row(micro_batch)); }

  at::Tensor part(const at::Tensor& whole, int micro_batch) const {
    return whole.narrow(0, first_row(micro_batch), rows_of(micro_batch));
  }

  MessageContext context(int micro_batch) const {
    MessageContext context;
    context.seed = seed;
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

at::Tensor take(std::map<std::pair<int, int>, at::Tensor>& from, const Action& action) {
  auto node = from.extract({action.stage, action.micro_batch});
  STRAIT_CHECK(!node.empty(), "nothing is there for stage {}, micro-batch {}", action.stage,
               action.micro_batch);
  return std::move(node.mapped());
}

Tag tag_of(int boundary, Direction direction, int micro_batch) {
  return {static_cast<uint32_t>(boundary), direction, static_cast<uint32_t>(micro_batch)};
}

void record(const Loss& loss, uint64_t step, StepResult& result) {
  const double mean = loss.mean.item<double>();
  if (!std::isfinite(mean)) throw NumericError("the loss is not finite at step {}", step);
  result.loss_sum += mean * static_cast<double>(loss.count);
  result.correct += loss.correct;
  result.count += loss.count;
}

}  // namespace

Executor::Executor(Setup setup, Transport& transport)
    : stages_(std::move(setup.stages)),
      boundaries_(std::move(setup.boundaries)),
      sample_shapes_(std::move(setup.sample_shapes)),
      options_(setup.options),
      micro_rows_((setup.batch_size + setup.options.micro_batches - 1) / setup.options.micro_batches),
      seed_(setup.seed),
      transport_(transport) {
  STRAIT_CHECK(!stages_.empty() && stages_.size() == boundaries_.size() + 1 &&
                   sample_shapes_.size() == boundaries_.size(),
               "{} stages, {} boundaries, {} shapes", stages_.size(), boundaries_.size(),
               sample_shapes_.size());
}

StepResult Executor::train(const StepInput& batch, bool compressed) {
  if (compressed) {
    for (Boundary& boundary : boundaries_) boundary.expect(batch.next_ids);
  }
  return execute(batch, {.training = true, .compressed = compressed});
}

StepResult Executor::evaluate(const StepInput& batch, bool compressed) {
  return execute(batch, {.training = false, .compressed = compressed});
}

const Plan& Executor::plan_for(uint32_t micro_batches, bool training) {
  const auto [place, is_new] = plans_.try_emplace({micro_batches, training});
  if (is_new) {
    const int stages = static_cast<int>(stages_.size());
    const int parts = static_cast<int>(micro_batches);
    const Plan compute = training ? make_schedule(options_.schedule, {stages, parts, options_.stages_per_rank})
                                  : forward_only(stages, parts);
    place->second = one_process(lower(compute));
    validate(place->second, training ? Passes::forward_backward : Passes::forward_only);
  }
  return place->second;
}

StepResult Executor::execute(const StepInput& batch, MessageMode mode) {
  Run run{.batch = batch, .mode = mode, .micro_rows = micro_rows_, .seed = seed_};
  STRAIT_CHECK(run.rows() > 0, "an empty batch");
  const auto parts = static_cast<uint32_t>((run.rows() + micro_rows_ - 1) / micro_rows_);
  try {
    for (const Action& action : plan_for(parts, mode.training).ranks.front()) perform(action, run);
  } catch (...) {
    for (auto& stage : stages_) stage.clear();
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
  Stage& stage = stages_[static_cast<size_t>(action.stage)];
  const auto micro_batch = static_cast<uint32_t>(action.micro_batch);
  const at::Tensor input =
      action.stage == 0 ? run.part(run.batch.inputs, action.micro_batch) : take(run.inputs, action);
  if (!stage.is_last()) {
    run.outputs[{action.stage, action.micro_batch}] =
        run.mode.training ? stage.forward(micro_batch, input) : stage.infer(input);
    return;
  }
  const at::Tensor targets = run.part(run.batch.targets, action.micro_batch);
  record(run.mode.training ? stage.forward_loss(micro_batch, input, targets) : stage.infer_loss(input, targets),
         run.batch.step, run.result);
}

void Executor::backward(const Action& action, Run& run) {
  Stage& stage = stages_[static_cast<size_t>(action.stage)];
  at::Tensor gradient;
  if (stage.is_last()) {
    const double weight =
        static_cast<double>(run.rows_of(action.micro_batch)) / static_cast<double>(run.rows());
    gradient = at::full({}, weight, run.batch.inputs.options().dtype(at::kFloat));
  } else {
    gradient = take(run.gradients, action);
  }
  at::Tensor returned = stage.backward(static_cast<uint32_t>(action.micro_batch), gradient);
  if (action.stage > 0) run.returned[{action.stage, action.micro_batch}] = std::move(returned);
}

void Executor::send(const Action& action, Run& run) {
  const bool down = action.op == Op::send_activation;
  const int index = down ? action.stage : action.stage - 1;
  Boundary& boundary = boundaries_[static_cast<size_t>(index)];
  Sender& sender = down ? *boundary.activation_sender : *boundary.gradient_sender;
  const at::Tensor message = take(down ? run.outputs : run.returned, action);
  transport_.send(tag_of(index, down ? Direction::activation : Direction::gradient, action.micro_batch),
                  sender.encode(message, run.context(action.micro_batch), run.mode, transport_.frame_check()));
}

void Executor::receive(const Action& action, Run& run) {
  const bool down = action.op == Op::recv_activation;
  const int index = down ? action.stage - 1 : action.stage;
  Boundary& boundary = boundaries_[static_cast<size_t>(index)];
  Receiver& receiver = down ? *boundary.activation_receiver : *boundary.gradient_receiver;
  MessageMeta meta{{run.rows_of(action.micro_batch)}};
  const auto& sample = sample_shapes_[static_cast<size_t>(index)];
  meta.shape.insert(meta.shape.end(), sample.begin(), sample.end());
  Buffer frame =
      transport_.receive(tag_of(index, down ? Direction::activation : Direction::gradient, action.micro_batch),
                         receiver.frame_bound(meta));
  const at::Tensor message = receiver.decode(std::move(frame), meta, run.context(action.micro_batch), run.mode,
                                             transport_.frame_check());
  (down ? run.inputs : run.gradients)[{action.stage, action.micro_batch}] =
      message.to(run.batch.inputs.device());
}

}  // namespace strait
