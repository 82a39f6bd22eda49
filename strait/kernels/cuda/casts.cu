#include "strait/kernels/cuda/casts.h"

#include "strait/kernels/cuda/device.cuh"
#include "strait/kernels/cuda/half_arithmetic.h"

namespace strait::kernels::cuda {
namespace {

/// The elements of octet `number`.
__device__ uint32_t elements_of(uint64_t number, uint64_t count) {
  const uint64_t begin = number * kOctet;
  return begin < count ? static_cast<uint32_t>(least_of<uint64_t>(count - begin, kOctet)) : 0;
}

template <ValueType type>
__global__ void __launch_bounds__(kThreads)
    narrow_octets(const float* x, uint64_t count, uint16_t* out, uint32_t* faults) {
  const uint64_t number = thread_number();
  const uint32_t size = elements_of(number, count);
  float octet[kOctet];
  load_octet(x + number * kOctet, size, octet);
  bool fits = true;
  uint32_t words[kOctet / 2];
#pragma unroll
  for (uint32_t i = 0; i < kOctet; i += 2) {
    fits = fits && is_sendable(octet[i], type) && is_sendable(octet[i + 1], type);
    words[i / 2] = value_bits(octet[i], type) | value_bits(octet[i + 1], type) << 16;
  }
  if (!fits) raise(faults, kNotSendable);
  uint16_t* const target = out + number * kOctet;
  if (size == kOctet && is_aligned(target, sizeof(uint4))) {
    *reinterpret_cast<uint4*>(target) = make_uint4(words[0], words[1], words[2], words[3]);
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) {
    if (i < size) target[i] = static_cast<uint16_t>(words[i / 2] >> (i % 2 * 16));
  }
}

template <ValueType type>
__global__ void __launch_bounds__(kThreads)
    widen_octets(const uint16_t* in, uint64_t count, float* out, uint32_t* faults) {
  const uint64_t number = thread_number();
  const uint32_t size = elements_of(number, count);
  const uint16_t* const from = in + number * kOctet;
  uint32_t words[kOctet / 2] = {};
  if (size == kOctet && is_aligned(from, sizeof(uint4))) {
    const uint4 four = *reinterpret_cast<const uint4*>(from);
    words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      if (i < size) words[i / 2] |= static_cast<uint32_t>(from[i]) << (i % 2 * 16);
    }
  }
  float octet[kOctet];
  bool is_message = true;
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) {
    const uint32_t bits = words[i / 2] >> (i % 2 * 16) & 0xffff;
    is_message = is_message && is_received(bits, type);
    octet[i] = value_of(bits, type);
  }
  if (!is_message) raise(faults, kNotAMessage);
  store_octet(octet, size, out + number * kOctet);
}

}  // namespace

void narrow(const float* x, uint64_t count, ValueType type, void* out, uint32_t* faults, Stream stream) {
  if (count == 0) return;
  const auto kernel = type == ValueType::fp16 ? narrow_octets<ValueType::fp16> : narrow_octets<ValueType::bf16>;
  launch(kernel, (count + kOctet - 1) / kOctet, stream, x, count, static_cast<uint16_t*>(out), faults);
}

void widen(const void* in, uint64_t count, ValueType type, float* out, uint32_t* faults, Stream stream) {
  if (count == 0) return;
  const auto kernel = type == ValueType::fp16 ? widen_octets<ValueType::fp16> : widen_octets<ValueType::bf16>;
  launch(kernel, (count + kOctet - 1) / kOctet, stream, static_cast<const uint16_t*>(in), count, out, faults);
}

}  // namespace strait::kernels::cuda
