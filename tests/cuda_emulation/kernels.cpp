// The kernels, compiled for the emulation.

#include "strait/kernels/cuda/card.cu"
#include "strait/kernels/cuda/casts.cu"
#include "strait/kernels/cuda/quant.cu"
#include "strait/kernels/cuda/quant_symmetric.cu"
#include "strait/kernels/cuda/small_floats.cu"
#include "strait/kernels/cuda/sparse_read.cu"
#include "strait/kernels/cuda/topk.cu"
