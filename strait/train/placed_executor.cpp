#include "strait/train/placed_executor.h"

#include <ATen/Context.h>
#include <ATen/core/ivalue.h>

#include <utility>

#include "strait/codecs/device_order.h"
#include "strait/data/batch_parts.h"
#include "strait/train/precision.h"
#include "strait/train/runtime.h"

namespace strait {
namespace {

/// The stages that are here; of the others the weights stay where they are.
at::Device move_to_device(const Placement& placement, const TrainOptions& train) {
  const at::Device device = device_of(train.device);
  check_precision(train.precision, device);
  // Some of cuDNN's gradients are sums in the order in which threads come, which differs from run to run.
  if (device.is_cuda()) at::globalContext().setDeterministicCuDNN(true);
  set_current_device(device);
  placement.own().to(device);
  return device;
}

Executor::Setup setup_of(Placement& placement, const TrainerOptions& options, at::Device device) {
  const auto& stages = placement.stages();
  Executor::Setup setup;
  setup.stage_count = static_cast<int>(stages.size());
  setup.rank = placement.pipeline().rank();
  setup.ranks = placement.pipeline().size();
  setup.schedule = options.pipeline.schedule;
  setup.micro_batches = options.pipeline.micro_batches;
  setup.stages_per_rank = options.pipeline.stages_per_rank;
  setup.batch_size = part_of_batch(options.batch_size, placement.replica(), options.pipeline.replicas).rows;
  setup.seed = options.seed;
  setup.device = device;
  const auto shapes = placement.boundary_shapes();
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool last = i + 1 == stages.size();
    if (placement.is_here(i)) {
      setup.stages.try_emplace(static_cast<int>(i),
                               forward_of(placement.model(), stages[i], options.train.precision, device.type()),
                               last ? options.task.loss : LossFunction(), i == 0);
    }
    if (last) break;
    const std::string& cut = placement.cuts()[i];
    const auto add = [&](const std::string& name, const BoundaryLinks& links, int diagnostics,
                         const std::vector<int64_t>& shape) {
      setup.boundaries.emplace_back(
          name, static_cast<uint16_t>(setup.boundaries.size()), links, diagnostics,
          BoundaryEndpoints::Local{.upstream = placement.is_here(i), .downstream = placement.is_here(i + 1)});
      setup.sample_shapes.push_back(shape);
    };
    add(cut, links_of(options.compression, cut), options.compression.diagnostics, shapes[i]);
    if (placement.passes_input()) {
      add(input_boundary(cut), integer_links(placement.model().passed_below), 0,
          placement.model().sample_shape);
    }
    setup.tensors_at_cut.push_back(placement.passes_input() ? 2 : 1);
  }
  return setup;
}

}  // namespace

PlacedExecutor::PlacedExecutor(Placement& placement, const TrainerOptions& options, Trace* trace)
    : device_(move_to_device(placement, options.train)),
      transport_(placement.make_transport(device_)),
      executor_(setup_of(placement, options, device_), *transport_, trace) {}

StepInput PlacedExecutor::input_of(Batch& batch, uint64_t step) const {
  const auto there = [&](const at::Tensor& x) { return x.defined() ? x.to(device_) : x; };
  StepInput input{{there(batch.inputs)}, there(batch.targets), step, static_cast<int64_t>(batch.ids.size())};
  input.ids = std::move(batch.ids);
  input.classes = std::move(batch.classes);
  return input;
}

}  // namespace strait
