#include "strait/codecs/codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include "strait/codecs/device_payload.h"
#include "strait/codecs/sparsifier.h"

namespace strait {
namespace {

std::span<const float> elements_of(const at::Tensor& x) {
  return {x.data_ptr<float>(), static_cast<size_t>(x.numel())};
}

std::span<std::byte> bytes_of(const at::Tensor& payload) {
  return std::as_writable_bytes(std::span(payload.data_ptr<uint8_t>(), static_cast<size_t>(payload.numel())));
}

}  // namespace

MessageMeta meta_of(const at::Tensor& x) { return {x.sizes().vec()}; }

PayloadSize Codec::payload_size(const MessageMeta& meta) const {
  return meta.elements() == 0 ? PayloadSize{0, true} : do_payload_size(meta);
}

at::Tensor Codec::encode(const at::Tensor& x, const MessageContext& context) const {
  const PayloadSize size = payload_size(meta_of(x));
  if (size.exact) {  // else what the device has may be another form
    if (at::Tensor payload = encode_there(x, context); payload.defined()) return payload;
  }
  const at::Tensor space = at::empty({static_cast<int64_t>(size.bound)}, at::kByte);
  ByteWriter out(bytes_of(space));
  write(x, context, out);
  const at::Tensor payload = space.narrow(0, 0, static_cast<int64_t>(out.used()));
  return (payload.numel() == space.numel() ? payload : payload.clone()).to(x.device());
}

at::Tensor Codec::decode(const at::Tensor& payload, const MessageMeta& meta,
                         const MessageContext& context) const {
  STRAIT_CHECK(payload.scalar_type() == at::kByte && payload.dim() == 1,
               "a payload of codec {} is uint8 of one dimension, not {} of {}", spec(),
               c10::toString(payload.scalar_type()), payload.dim());
  if (at::Tensor x = decode_there(payload, meta, context); x.defined()) return x;
  const at::Tensor here = payload.to(at::kCPU).contiguous();
  ByteReader in(bytes_of(here));
  MessageContext there = context;
  there.device = payload.device();
  return read(in, meta, there).tensor;
}

IndexSet Codec::write(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const {
  STRAIT_CHECK(x.scalar_type() == at::kFloat, "codec {} takes float32 tensors", spec());
  if (x.numel() == 0) return {};
  if (const at::Tensor message = encode_there(x, context); message.defined()) {
    return write_from_device(*this, message, meta_of(x), context, out);
  }
  const at::Tensor dense = x.to(at::kCPU).contiguous();
  if (context.wants_indices && sparsifier() != nullptr) return sparsifier()->write_indexed(dense, context, out);
  do_encode(elements_of(dense), meta_of(x), context, out);
  return {};
}

Decoded Codec::read(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const {
  Decoded message;
  if (!context.device.is_cpu() && goes_there(meta, context)) {
    ByteReader ahead = in;
    DeviceMessage there = read_to_device(*this, ahead, meta, context);
    if (there.bytes.defined()) message.tensor = device_decode(there.bytes, meta, context);
    if (message.tensor.defined()) {
      expect_end(ahead);
      in = ahead;
      message.indices = std::move(there.indices);
      return message;
    }
  }
  MessageContext here = context;  // what codecs are made of works on the CPU
  here.device = at::kCPU;
  if (meta.elements() == 0) {
    message.tensor = at::empty(meta.shape, at::kFloat);
  } else if (context.wants_indices && sparsifier() != nullptr) {
    message = sparsifier()->read_indexed(in, meta, here);
  } else {
    message.tensor = do_decode_tensor(in, meta, here);
  }
  expect_end(in);
  message.tensor = message.tensor.to(context.device);
  return message;
}

void Codec::read_elements(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                          std::span<float> out) const {
  do_decode(in, meta, context, out);
  expect_end(in);
}

void Codec::expect_end(const ByteReader& in) const {
  if (in.left() != 0) throw WireError("{} bytes follow the payload of codec {}", in.left(), spec());
}

at::Tensor Codec::do_decode_tensor(ByteReader& in, const MessageMeta& meta,
                                   const MessageContext& context) const {
  at::Tensor out = at::empty(meta.shape, at::kFloat);
  do_decode(in, meta, context, {out.data_ptr<float>(), meta.elements()});
  return out;
}

bool Codec::goes_there(const MessageMeta& meta, const MessageContext& context) const {
  if (meta.elements() == 0) return false;
  const bool reports_indices = context.wants_indices && sparsifier() != nullptr;
  return device_form() != nullptr || (!reports_indices && payload_size(meta).exact);
}

/// device_encode() of a tensor of a device, where that can be had.
at::Tensor Codec::encode_there(const at::Tensor& x, const MessageContext& context) const {
  if (x.is_cpu() || x.scalar_type() != at::kFloat || !goes_there(meta_of(x), context)) return {};
  return device_encode(x.contiguous(), context);
}

/// device_decode() of bytes on a device, where that can be had.
at::Tensor Codec::decode_there(const at::Tensor& payload, const MessageMeta& meta,
                               const MessageContext& context) const {
  if (payload.is_cpu() || !goes_there(meta, context)) return {};
  const PayloadSize size = payload_size(meta);
  const bool fits = size.exact && static_cast<size_t>(payload.numel()) == size.bound;
  return fits ? device_decode(payload.contiguous(), meta, context) : at::Tensor();
}

at::Tensor Codec::device_encode(const at::Tensor& /*x*/, const MessageContext& /*context*/) const { return {}; }

at::Tensor Codec::device_decode(const at::Tensor& /*payload*/, const MessageMeta& /*meta*/,
                                const MessageContext& /*context*/) const {
  return {};
}

at::Tensor Codec::reference(const at::Tensor& /*x*/) const { return {}; }

at::Tensor Codec::reconstruct(const at::Tensor& x, const MessageContext& context) const {
  return decode(encode(x, context), meta_of(x), context);
}

}  // namespace strait
