#include "strait/codecs/device_payload.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstring>

namespace strait {
namespace {

/// Pinned memory of the thread's own, from and to which a device copies by itself. It is reused: whoever gives
/// a device a copy waits for it.
at::Tensor staging(int64_t size) {
  thread_local at::Tensor memory;
  if (!memory.defined() || memory.numel() < size) {
    memory = at::empty({size}, at::TensorOptions(at::kByte).pinned_memory(true));
  }
  return memory.narrow(0, 0, size);
}

void wait_for(c10::Device device) {
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

}  // namespace

void copy_payload(const at::Tensor& payload, ByteWriter& out) {
  const auto bytes = out.claim(static_cast<size_t>(payload.numel()));
  if (bytes.empty()) return;
  const at::Tensor pinned = staging(payload.numel());
  pinned.copy_(payload, /*non_blocking=*/true);
  wait_for(payload.device());
  std::memcpy(bytes.data(), pinned.data_ptr(), bytes.size());
}

at::Tensor take_payload(ByteReader& in, c10::Device device) {
  const auto bytes = in.take(in.left());
  const auto size = static_cast<int64_t>(bytes.size());
  at::Tensor payload = at::empty({size}, at::TensorOptions(at::kByte).device(device));
  if (size == 0) return payload;
  const at::Tensor pinned = staging(size);
  std::memcpy(pinned.data_ptr(), bytes.data(), bytes.size());
  payload.copy_(pinned, /*non_blocking=*/true);
  wait_for(device);
  return payload;
}

}  // namespace strait
