#include "strait/kernels/cuda/card.h"

#include "strait/kernels/cuda/device.cuh"

namespace strait::kernels::cuda {
namespace {

/// All kernels are compiled for the same cards, so that one stands for all.
__global__ void nothing() {}

}  // namespace

bool serve_this_card() {
  cudaFuncAttributes attributes;
  const bool has_code = cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess;
  if (!has_code) cudaGetLastError();  // which whoever asks next would take for its own
  return has_code;
}

}  // namespace strait::kernels::cuda
