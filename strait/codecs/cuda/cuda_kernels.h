#pragma once

#include "strait/codecs/device_kernels.h"

namespace strait {

/// The CUDA kernels (kernels/cuda) over tensors. They serve tensors of CUDA's devices where strait is built
/// with a LibTorch that has them. Every call waits for the device, to learn whether the data were right.
const DeviceKernels& cuda_kernels();

}  // namespace strait
