#include "strait/codecs/device_payload.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

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

/// Whether the device's bytes go to the device at the other end: as many as the payload has, though groups may
/// lie otherwise in them. Indices that are wanted are read on the host.
bool stays_there(const Codec& codec, const MessageMeta& meta, const MessageContext& context) {
  if (context.payload == nullptr) return false;
  const DeviceForm* const form = codec.device_form();
  return form == nullptr || (!context.wants_indices && form->form_size(meta) == codec.payload_size(meta).bound);
}

void wait_for(c10::Device device) {
  c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

}  // namespace

std::span<const std::byte> bytes_on_host(const at::Tensor& bytes) {
  if (bytes.numel() == 0) return {};
  const at::Tensor pinned = staging(bytes.numel());
  pinned.copy_(bytes, /*non_blocking=*/true);
  wait_for(bytes.device());
  return std::as_bytes(std::span(pinned.data_ptr<uint8_t>(), static_cast<size_t>(bytes.numel())));
}

at::Tensor bytes_on_device(size_t size, c10::Device device,
                           const std::function<void(std::span<std::byte>)>& fill) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(size)}, at::TensorOptions(at::kByte).device(device));
  if (size == 0) {
    fill({});
    return bytes;
  }
  const at::Tensor pinned = staging(bytes.numel());
  fill(std::as_writable_bytes(std::span(pinned.data_ptr<uint8_t>(), size)));
  bytes.copy_(pinned, /*non_blocking=*/true);
  wait_for(device);
  return bytes;
}

IndexSet write_from_device(const Codec& codec, const at::Tensor& message, const MessageMeta& meta,
                           const MessageContext& context, ByteWriter& out) {
  if (stays_there(codec, meta, context)) {
    *context.payload = message;
    return {};
  }
  const auto bytes = bytes_on_host(message);
  if (const DeviceForm* const form = codec.device_form()) {
    return form->payload_of_form(bytes, meta, context.wants_indices, out);
  }
  std::ranges::copy(bytes, out.claim(bytes.size()).begin());
  return {};
}

DeviceMessage read_to_device(const Codec& codec, ByteReader& in, const MessageMeta& meta,
                             const MessageContext& context) {
  DeviceMessage message;
  if (context.payload != nullptr && context.payload->defined()) {
    const auto size = static_cast<size_t>(context.payload->numel());
    if (in.left() == 0 && size == codec.payload_size(meta).bound) message.bytes = *context.payload;
  } else if (const DeviceForm* const form = codec.device_form()) {
    message.bytes = bytes_on_device(form->form_size(meta), context.device, [&](std::span<std::byte> bytes) {
      message.indices = form->form_of_payload(in, meta, context.wants_indices, bytes);
    });
  } else if (in.left() == codec.payload_size(meta).bound) {
    const auto payload = in.take(in.left());
    message.bytes = bytes_on_device(payload.size(), context.device, [&](std::span<std::byte> bytes) {
      std::ranges::copy(payload, bytes.begin());
    });
  }
  return message;
}

}  // namespace strait
