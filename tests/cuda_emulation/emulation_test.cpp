// The CUDA kernels, run by the emulation, against their arithmetic in plain loops, which the tests of kernels,
// codecs and links hold against the CPU's codecs.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "strait/kernels/cuda/strips.cuh"
#include "tests/cuda/operations.h"
#include "tests/cuda/tensors.h"

namespace strait::cuda_check {
namespace {

void expect_right(const std::vector<Operation>& operations, const Shape& shape, size_t kind) {
  for (const Operation& operation : operations) {
    EXPECT_TRUE(operation.check()) << operation.name << " of [" << shape.rows << ", " << shape.row_size
                                   << "], tensor " << kind;
  }
}

void expect_all_right(const Shape& shape, const std::vector<std::vector<float>>& tensors) {
  for (size_t kind = 0; kind < tensors.size(); ++kind) {
    expect_right(group_operations(std::make_shared<Tensor>(shape, tensors[kind])), shape, kind);
    expect_right(sparse_operations(std::make_shared<Tensor>(shape, tensors[kind])), shape, kind);
    expect_right(cast_operations(std::make_shared<Tensor>(shape, tensors[kind])), shape, kind);
  }
}

TEST(CudaEmulation, KernelsOfShortRowsAreTheirArithmetic) {
  for (const Shape& shape : {Shape{3, 83}, Shape{2, 264}, Shape{1, 2049}}) {
    expect_all_right(shape, kinds_of_tensors(shape.elements()));
  }
}

TEST(CudaEmulation, KernelsOfRowsOfManyTilesAreTheirArithmetic) {
  const Shape shape{2, 16389};
  const auto tensors = kinds_of_tensors(shape.elements());
  expect_all_right(shape, {tensors[0]});
  for (size_t kind = 1; kind < tensors.size(); ++kind) {
    expect_right(sparse_operations(std::make_shared<Tensor>(shape, tensors[kind])), shape, kind);
  }
}

TEST(CudaEmulation, CountsOfLongRowsAreAddedUp) {
  for (const uint32_t size : {1, 255, 1024, 1025, 5000}) {
    std::vector<uint64_t> counts(size);
    for (uint32_t i = 0; i < size; ++i) counts[i] = (uint64_t{i} << 31) + i % 7;
    std::vector<uint64_t> expected(size);
    std::exclusive_scan(counts.begin(), counts.end(), expected.begin(), uint64_t{0});
    const uint64_t sum = expected.back() + counts.back();
    uint32_t threads_with_sum = 0;
    emulation::run(1, kernels::cuda::kThreads,
                   [&] { threads_with_sum += kernels::cuda::add_up_row(counts.data(), size) == sum ? 1 : 0; });
    EXPECT_EQ(counts, expected) << size;
    EXPECT_EQ(threads_with_sum, kernels::cuda::kThreads) << size;
  }
}

}  // namespace
}  // namespace strait::cuda_check
