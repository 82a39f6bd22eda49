#include "strait/codecs/codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

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
  const at::Tensor space = at::empty({static_cast<int64_t>(payload_size(meta_of(x)).bound)}, at::kByte);
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
  const at::Tensor here = payload.to(at::kCPU).contiguous();
  ByteReader in(bytes_of(here));
  MessageContext there = context;
  there.device = payload.device();
  return read(in, meta, there).tensor;
}

IndexSet Codec::write(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const {
  STRAIT_CHECK(x.scalar_type() == at::kFloat, "codec {} takes float32 tensors", spec());
  if (x.numel() == 0) return {};
  const at::Tensor dense = x.to(at::kCPU).contiguous();
  if (context.wants_indices && sparsifier() != nullptr) return sparsifier()->write_indexed(dense, context, out);
  do_encode(elements_of(dense), meta_of(x), context, out);
  return {};
}

Decoded Codec::read(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const {
  Decoded message;
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

at::Tensor Codec::reference(const at::Tensor& /*x*/) const { return {}; }

at::Tensor Codec::reconstruct(const at::Tensor& x, const MessageContext& context) const {
  return decode(encode(x, context), meta_of(x), context);
}

}  // namespace strait
