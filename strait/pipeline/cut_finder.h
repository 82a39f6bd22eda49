#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "strait/pipeline/cut.h"
#include "strait/pipeline/stage_module.h"
#include "strait/transport/group.h"

namespace strait {

/// What crosses the cuts of a pipeline, batch by batch: infer_cuts() for each shape that inputs have, and again
/// when other parameters are trained.
class CutFinder {
 public:
  /// Stages and group must outlive it. `runs` says which stages are in this process.
  CutFinder(const std::vector<StageModule>& stages, std::function<bool(int stage)> runs, at::Device device,
            Group& group)
      : stages_(stages), runs_(std::move(runs)), device_(device), group_(group) {}

  /// What crosses in a batch of these inputs and extras, [rows, ...] each; without inputs, what crossed in the
  /// one before. Holds until the next call. Collective where they have a shape for the first time, which every
  /// process must then see. Throws InputError where another process has another number of rows in the first
  /// batch, and where shapes change although some process had no inputs in that; and what infer_cuts() throws.
  const Cuts& cuts_of(const TensorList& inputs, const TensorList& extras, int64_t rows);

  /// Other parameters are trained from now on. Every process calls it; a single one notices.
  void forget() { known_.clear(); }

 private:
  using SampleShapes = std::vector<std::vector<int64_t>>;

  std::vector<bool> trained_here() const;

  const std::vector<StageModule>& stages_;
  std::function<bool(int stage)> runs_;
  at::Device device_;
  Group& group_;
  std::map<SampleShapes, Cuts> known_;
  SampleShapes shapes_;             ///< of the last batch, as far as this process had inputs
  std::vector<bool> trained_;       ///< trained_here() at the last batch, in a single process
  bool inputs_everywhere_ = false;  ///< whether every process had inputs in the first batch
  bool is_first_ = true;
};

}  // namespace strait
