// Compares what the CUDA kernels give with their arithmetic on the host, over tensors of several kinds and
// shapes, and then times them against a copy of the tensor on the device.
//
//   cuda_kernels               compares and times
//   cuda_kernels --verify      compares alone
//   cuda_kernels --only PART   compares and times those whose name has this in it, over the largest shape, for
//                              a profiler; a decoder reads what its encoder wrote, so PART names both
//
// Exits with status 1 where something differs.

#include <cstdio>
#include <cstring>
#include <exception>

#include "tests/cuda/operations.h"
#include "tests/cuda/tensors.h"

namespace strait::cuda_check {
namespace {

/// Milliseconds that `work` takes on the default stream, the mean of several calls behind some that are not
/// counted.
template <class Work>
float milliseconds(const Work& work) {
  constexpr int kWarmUps = 3;
  constexpr int kCalls = 20;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  expect(cudaEventCreate(&begin));
  expect(cudaEventCreate(&end));
  for (int i = 0; i < kWarmUps; ++i) work();
  expect(cudaEventRecord(begin));
  for (int i = 0; i < kCalls; ++i) work();
  expect(cudaEventRecord(end));
  expect(cudaEventSynchronize(end));
  float total = 0;
  expect(cudaEventElapsedTime(&total, begin, end));
  expect(cudaEventDestroy(begin));
  expect(cudaEventDestroy(end));
  return total / kCalls;
}

std::vector<Operation> operations_over(const SharedTensor& tensor) {
  auto all = group_operations(tensor);
  for (auto& more : {sparse_operations(tensor), cast_operations(tensor)})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Whether all operations over tensors of this shape are right; says which are not.
bool verify(const Shape& shape) {
  bool is_right = true;
  size_t count = 0;
  for (const auto& x : kinds_of_tensors(shape.elements())) {
    for (const Operation& operation : operations_over(std::make_shared<Tensor>(shape, x))) {
      ++count;
      if (operation.check()) continue;
      std::printf("%s is wrong for [%llu, %llu]\n", operation.name.c_str(),
                  static_cast<unsigned long long>(shape.rows), static_cast<unsigned long long>(shape.row_size));
      is_right = false;
    }
  }
  std::printf("[%llu, %llu]: %zu comparisons with the host\n", static_cast<unsigned long long>(shape.rows),
              static_cast<unsigned long long>(shape.row_size), count);
  return is_right;
}

/// Checks and times the operations over a tensor of normal numbers, those with `part` in their name.
bool time(const char* name, const Shape& shape, const char* part = "") {
  const auto tensor = std::make_shared<Tensor>(shape, kernels::numbers(shape.elements(), 2));
  const size_t bytes = tensor->x.size() * sizeof(float);
  const float copy = milliseconds([&] {
    expect(cudaMemcpyAsync(tensor->out.data(), tensor->device_x.data(), bytes, cudaMemcpyDeviceToDevice));
  });
  const auto rate = [&](float time) { return static_cast<double>(bytes) / time / 1e6; };
  std::printf("\n%-36s %9s %9s %9s\n%-36s %9.4f %9.1f %9.2f\n", name, "ms", "GB/s", "of a copy", "copy", copy,
              rate(copy), 1.0);
  bool is_right = true;
  for (auto* const make : {group_operations, sparse_operations, cast_operations}) {
    for (const Operation& operation : make(tensor)) {
      if (!operation.is_timed || operation.name.find(part) == std::string::npos) continue;
      if (!operation.check()) {
        std::printf("%s is wrong\n", operation.name.c_str());
        is_right = false;
        continue;
      }
      const float own = milliseconds(operation.launch);
      std::printf("%-36s %9.4f %9.1f %9.2f\n", operation.name.c_str(), own, rate(own), copy / own);
    }
  }
  return is_right;
}

bool run(bool times, const char* part) {
  cudaDeviceProp properties{};
  expect(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, sm_%d%d\n", properties.name, properties.major, properties.minor);
  constexpr Shape kLargest = {64, 1 << 20};
  if (part != nullptr) return time("64x1024x1024", kLargest, part);
  bool is_right = true;
  // Rows around the sizes of octets, warps, tiles and short rows, whole and odd.
  for (const Shape& shape : {Shape{3, 83}, Shape{7, 256}, Shape{2, 2049}, Shape{33, 1000}, Shape{2, 16384},
                             Shape{2, 16389}, Shape{1, 300001}}) {
    is_right = verify(shape) && is_right;
  }
  if (!times) return is_right;
  is_right = time("16x128x768", {16, 128 * 768}) && is_right;
  is_right = time("64x64x32x32", {64, 64 * 32 * 32}) && is_right;
  return time("64x1024x1024", kLargest) && is_right;
}

}  // namespace
}  // namespace strait::cuda_check

int main(int argc, char** argv) {
  const bool verifies_alone = argc == 2 && std::strcmp(argv[1], "--verify") == 0;
  const char* const part = argc == 3 && std::strcmp(argv[1], "--only") == 0 ? argv[2] : nullptr;
  if (argc > 1 && !verifies_alone && part == nullptr) {
    std::fprintf(stderr, "usage: cuda_kernels [--verify | --only PART]\n");
    return 2;
  }
  try {
    return strait::cuda_check::run(!verifies_alone, part) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cuda_kernels: %s\n", error.what());
    return 1;
  }
}
