#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "strait/data/dataset.h"

namespace strait {

/// Samples of any shape in memory: inputs [N, ...] float32, and targets: int64 [N], labels of classes, or
/// float32 [N, K], numbers. Nothing is drawn, so the augmentation key changes nothing.
class TensorDataset final : public Dataset {
 public:
  /// Both have the same first dimension.
  TensorDataset(at::Tensor inputs, at::Tensor targets);

  int64_t size() const override { return targets_.size(0); }
  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const override;
  std::vector<int64_t> classes(std::span<const int64_t> ids) const override;

 private:
  at::Tensor inputs_;
  at::Tensor targets_;
};

/// The kind "tensors": the .safetensors files `train_file` and `test_file`, each a path from here or else below
/// `options.root`, with the tensors `inputs` and `targets` of a TensorDataset, or narrower types of theirs;
/// numbers of any shape [N, ...], which is flattened to [N, K]. The training set's targets decide the task.
/// `classes` says how many classes there are; 0 stands for one more than the largest label of the training set.
///
/// Throws InputError for a file without these tensors, of other types or shapes, with a value that is not
/// finite, with a label that is none, for a test set whose samples or targets have another form, and for
/// `classes` where targets are numbers.
DataSplits load_tensors(const DataOptions& options);

}  // namespace strait
