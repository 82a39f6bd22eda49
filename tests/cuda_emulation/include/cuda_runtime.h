#pragma once

// What the kernels of strait/kernels/cuda use of CUDA, for a C++ compiler (tests/cuda_emulation/emulation.h).

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tests/cuda_emulation/emulation.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static  // one block of threads runs at a time
#define __launch_bounds__(threads)
#define threadIdx (strait::emulation::thread_index())
#define blockIdx (strait::emulation::block_index())

using cudaError_t = int;
using cudaStream_t = void*;
constexpr cudaError_t cudaSuccess = 0;
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline const char* cudaGetErrorString(cudaError_t /*error*/) { return "out of memory"; }

/// Memory of the device is full of a pattern, so that nobody takes it for cleared.
inline cudaError_t cudaMalloc(void** memory, size_t size) {
  constexpr size_t kAlignment = 256;
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  *memory = std::aligned_alloc(kAlignment, rounded);
  if (*memory == nullptr) return 1;
  std::memset(*memory, 0xab, rounded);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind /*kind*/) {
  if (size > 0) std::memcpy(to, from, size);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t /*stream*/) {
  std::memset(memory, value, size);
  return cudaSuccess;
}

struct dim3 {
  dim3(unsigned of_x = 1) : x(of_x) {}  // NOLINT(google-explicit-constructor): as CUDA's
  unsigned x;
};
struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  cudaStream_t stream = nullptr;
};
template <class... Parameters>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* shape, void (*kernel)(Parameters...),
                               std::type_identity_t<Parameters>... arguments) {
  strait::emulation::run(shape->gridDim.x, shape->blockDim.x, [&] { kernel(arguments...); });
  return cudaSuccess;
}

struct cudaFuncAttributes {};
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* /*attributes*/, void (* /*kernel*/)(Parameters...)) {
  return cudaSuccess;
}

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

inline void __syncthreads() { strait::emulation::wait_for_block(); }
inline void __threadfence() {}
inline uint32_t __ldcg(const uint32_t* from) { return *from; }
template <class Value>
Value __shfl_sync(uint32_t /*lanes*/, Value value, int lane) {
  return strait::emulation::value_of_lane(value, static_cast<uint32_t>(lane));
}
template <class Value>
Value __shfl_xor_sync(uint32_t /*lanes*/, Value value, int change) {
  return strait::emulation::value_of_lane(value, strait::emulation::lane() ^ static_cast<uint32_t>(change));
}
template <class Value>
Value __shfl_up_sync(uint32_t /*lanes*/, Value value, uint32_t by) {
  const uint32_t own = strait::emulation::lane();
  return strait::emulation::value_of_lane(value, own < by ? own : own - by);
}
inline uint32_t __ballot_sync(uint32_t /*lanes*/, bool vote) { return strait::emulation::votes(vote); }
inline void __syncwarp() { __ballot_sync(0xffffffff, true); }
inline int __all_sync(uint32_t lanes, bool vote) { return __ballot_sync(lanes, vote) == 0xffffffff ? 1 : 0; }
inline uint32_t __popc(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }

inline uint32_t atomicOr(uint32_t* target, uint32_t bits) { return std::exchange(*target, *target | bits); }
inline uint32_t atomicAdd(uint32_t* target, uint32_t by) { return std::exchange(*target, *target + by); }
inline uint32_t atomicMax(uint32_t* target, uint32_t value) {
  return std::exchange(*target, *target < value ? value : *target);
}
