#pragma once

#include <cuda_runtime.h>
#include <math.h>  // NOLINT(modernize-deprecated-headers): fmaf() where both compilers have it

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strait/kernels/cuda/launch.h"
#include "strait/kernels/cuda/octet.h"

// What the kernels share: launches, and loads and stores of an octet.

namespace strait::kernels::cuda {

constexpr uint32_t kThreads = 256;  // of every block of threads
constexpr uint32_t kLanes = 32;     // of a warp
constexpr uint32_t kWarps = kThreads / kLanes;
constexpr uint32_t kAllLanes = 0xffffffff;

/// From so many elements of a message on there are enough parts of it for every processor, even if large ones.
constexpr uint64_t kManyElements = 1 << 22;

inline cudaStream_t handle_of(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

inline void expect_success(cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // which whoever asks next would take for its own
  throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

/// Launches a kernel with as many blocks of kThreads threads as so many threads take, at least one. Throws
/// where that is more than a launch can have.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), uint64_t threads, Stream stream, const Arguments&... arguments) {
  const uint64_t blocks = (threads + kThreads - 1) / kThreads;
  if (blocks > 0x7fffffff) throw std::runtime_error("CUDA: the message is too large for a launch");
  cudaLaunchConfig_t shape{};
  shape.gridDim = dim3(static_cast<unsigned>(blocks));
  shape.blockDim = dim3(kThreads);
  shape.stream = handle_of(stream);
  expect_success(cudaLaunchKernelEx(&shape, kernel, Parameters(arguments)...));
}

inline void clear(void* memory, size_t bytes, Stream stream) {
  expect_success(cudaMemsetAsync(memory, 0, bytes, handle_of(stream)));
}

/// This thread's number among all of a launch.
inline __device__ uint64_t thread_number() {
  return static_cast<uint64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

inline __device__ void raise(uint32_t* faults, uint32_t fault) { atomicOr(faults, fault); }

inline __device__ bool is_aligned(const void* at, uint32_t bytes) {
  return reinterpret_cast<uintptr_t>(at) % bytes == 0;
}

/// Reads `count` elements, at most 8, to `octet`; those behind them become 0.
inline __device__ void load_octet(const float* x, uint32_t count, float (&octet)[kOctet]) {
  if (count == kOctet && is_aligned(x, sizeof(float4))) {
    const float4 first = reinterpret_cast<const float4*>(x)[0];
    const float4 second = reinterpret_cast<const float4*>(x)[1];
    octet[0] = first.x, octet[1] = first.y, octet[2] = first.z, octet[3] = first.w;
    octet[4] = second.x, octet[5] = second.y, octet[6] = second.z, octet[7] = second.w;
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) octet[i] = i < count ? x[i] : 0.0F;
}

/// Writes the first `count` elements, at most 8.
inline __device__ void store_octet(const float (&octet)[kOctet], uint32_t count, float* out) {
  if (count == kOctet && is_aligned(out, sizeof(float4))) {
    reinterpret_cast<float4*>(out)[0] = make_float4(octet[0], octet[1], octet[2], octet[3]);
    reinterpret_cast<float4*>(out)[1] = make_float4(octet[4], octet[5], octet[6], octet[7]);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) {
    if (i < count) out[i] = octet[i];
  }
}

/// Whether all of some numbers are finite, by an instruction each: 0 times another number is NaN.
class AllFinite {
 public:
  __device__ void see(float x) { sum_ = fmaf(x, 0.0F, sum_); }
  __device__ bool are() const { return sum_ == 0; }

 private:
  float sum_ = 0;
};

/// Writes the low `bytes` bytes of a packed octet: in one store where they are 2, 4 or 8 and stand so, which
/// they do but for rows of an odd size.
inline __device__ void store_bytes(uint64_t packed, uint32_t bytes, uint8_t* out) {
  if (bytes == 8 && is_aligned(out, 8)) {
    *reinterpret_cast<uint64_t*>(out) = packed;
  } else if (bytes == 4 && is_aligned(out, 4)) {
    *reinterpret_cast<uint32_t*>(out) = static_cast<uint32_t>(packed);
  } else if (bytes == 2 && is_aligned(out, 2)) {
    *reinterpret_cast<uint16_t*>(out) = static_cast<uint16_t>(packed);
  } else {
    for (uint32_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(packed >> (8 * i));
  }
}

/// Writes the codes of an octet of `count` elements, of `bits` bits each. All lanes of a warp call it, those
/// that have nothing with count = 0. Codes whose bits are no power of two would be single bytes each; where the
/// lanes' octets follow each other from a word on, lanes put words together and the warp stores words that
/// stand side by side.
inline __device__ void store_codes(uint64_t packed, uint32_t count, uint32_t bits, uint8_t* out) {
  if ((bits & (bits - 1)) != 0) {
    const uint32_t lane = threadIdx.x % kLanes;
    const auto place = reinterpret_cast<uintptr_t>(out);
    const uintptr_t first = __shfl_sync(kAllLanes, static_cast<unsigned long long>(place), 0);
    const bool follows = count == kOctet && place == first + lane * bits && first % sizeof(uint32_t) == 0;
    if (__all_sync(kAllLanes, follows)) {
      const uint32_t words = kLanes * bits / sizeof(uint32_t);
      for (uint32_t begin = 0; begin < words; begin += kLanes) {
        const uint32_t byte = 4 * (begin + lane);
        const uint32_t from = byte / bits;  // the lane that has it
        const uint64_t own = __shfl_sync(kAllLanes, packed, static_cast<int>(from % kLanes));
        const uint64_t next = __shfl_sync(kAllLanes, packed, static_cast<int>((from + 1) % kLanes));
        if (begin + lane < words) {
          reinterpret_cast<uint32_t*>(first)[begin + lane] = word_of(own, next, byte - from * bits, bits);
        }
      }
      return;
    }
  }
  store_bytes(packed, octet_bytes(count, bits), out);
}

/// The way back from store_bytes(); the bytes behind them become 0.
inline __device__ uint64_t load_bytes(const uint8_t* in, uint32_t bytes) {
  if (bytes == 8 && is_aligned(in, 8)) return *reinterpret_cast<const uint64_t*>(in);
  if (bytes == 4 && is_aligned(in, 4)) return *reinterpret_cast<const uint32_t*>(in);
  if (bytes == 2 && is_aligned(in, 2)) return *reinterpret_cast<const uint16_t*>(in);
  uint64_t packed = 0;
  for (uint32_t i = 0; i < bytes; ++i) packed |= static_cast<uint64_t>(in[i]) << (8 * i);
  return packed;
}

}  // namespace strait::kernels::cuda
