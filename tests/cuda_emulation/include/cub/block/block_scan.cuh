#pragma once

#include <cuda_runtime.h>

namespace cub {

/// What the kernels use of CUB's.
template <class Value, int kThreads>
class BlockScan {
 public:
  struct TempStorage {
    Value values[kThreads];
  };
  explicit BlockScan(TempStorage& scratch) : scratch_(scratch) {}

  /// In `sum` the sum of what the threads before this one give.
  void ExclusiveSum(Value value, Value& sum) {
    scratch_.values[threadIdx.x] = value;
    __syncthreads();
    sum = 0;
    for (uint32_t i = 0; i < threadIdx.x; ++i) sum += scratch_.values[i];
    __syncthreads();
  }

 private:
  TempStorage& scratch_;
};

}  // namespace cub
