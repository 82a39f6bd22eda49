#pragma once

#include <torch/torch.h>

#include "strait/data/dataset.h"

namespace strait::test {

/// Two tensors as a data set; knows no augmentation.
class FixedDataset : public Dataset {
 public:
  FixedDataset(at::Tensor inputs, at::Tensor targets)
      : inputs_(std::move(inputs)), targets_(std::move(targets)) {}

  int64_t size() const override { return targets_.size(0); }

  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> /*augmentation_key*/) const override {
    std::vector<int64_t> list(ids.begin(), ids.end());
    const at::Tensor index = torch::tensor(list);
    return {inputs_.index_select(0, index), targets_.index_select(0, index), std::move(list)};
  }

  const at::Tensor& inputs() const { return inputs_; }
  const at::Tensor& targets() const { return targets_; }

 private:
  at::Tensor inputs_;
  at::Tensor targets_;
};

}  // namespace strait::test
