#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <span>

#include "strait/base/bytes.h"
#include "strait/codecs/codec.h"

namespace strait {

// Bytes of a device are tensors of it, uint8 of one dimension.

/// These bytes on the host, where they stay until the thread's next call of one of these functions.
std::span<const std::byte> bytes_on_host(const at::Tensor& bytes);

/// As many bytes on a device as `fill` writes on the host.
at::Tensor bytes_on_device(size_t size, c10::Device device,
                           const std::function<void(std::span<std::byte>)>& fill);

/// Writes what the codec's device_encode(), or a kernel in its place, gave of a message of this shape as its
/// payload, or leaves it in MessageContext::payload. Gives the indices that it keeps where the context wants
/// them.
IndexSet write_from_device(const Codec& codec, const at::Tensor& message, const MessageMeta& meta,
                           const MessageContext& context, ByteWriter& out);

/// What comes of a payload on its way to a device.
struct DeviceMessage {
  at::Tensor bytes;  ///< what the codec's device_decode(), or a kernel in its place, takes
  IndexSet indices;  ///< the indices that the message keeps, where the context wants them
};

/// The way back, on the context's device; consumes the payload, which may be in MessageContext::payload. The
/// bytes are undefined for a payload of a length that the codec does not write; then nothing is consumed.
/// Throws WireError as DeviceForm::form_of_payload() does.
DeviceMessage read_to_device(const Codec& codec, ByteReader& in, const MessageMeta& meta,
                             const MessageContext& context);

}  // namespace strait
