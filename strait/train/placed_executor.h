#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "strait/data/dataset.h"
#include "strait/pipeline/executor.h"
#include "strait/train/placement.h"
#include "strait/train/trainer_options.h"

namespace strait {

/// The executor of this process's stages, with the transport between it and the others.
class PlacedExecutor {
 public:
  /// Moves the model to the device. Throws InputError when the device is not there or does not have
  /// train.precision. The placement must outlive it, and the trace, which may be null.
  PlacedExecutor(Placement& placement, const TrainerOptions& options, Trace* trace);

  /// The executor itself.
  Executor& operator*() { return executor_; }

  /// Likewise.
  Executor* operator->() { return &executor_; }

  /// Of the stages.
  at::Device device() const { return device_; }

  /// A batch on the device, without what only training knows of it. Takes the ids and classes out of it.
  StepInput input_of(Batch& batch, uint64_t step) const;

 private:
  at::Device device_;
  std::unique_ptr<Transport> transport_;
  Executor executor_;
};

}  // namespace strait
