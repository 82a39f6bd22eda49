#include "strait/codecs/codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

namespace strait {
namespace {

std::span<const float> elements_of(const at::Tensor& x) {
  return {x.data_ptr<float>(), static_cast<size_t>(x.numel())};
}

}  // namespace

MessageMeta meta_of(const at::Tensor& x) { return {x.sizes().vec()}; }

PayloadSize Codec::payload_size(const MessageMeta& meta) const {
  return meta.elements() == 0 ? PayloadSize{0, true} : do_payload_size(meta);
}

void Codec::encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const {
  STRAIT_CHECK(x.scalar_type() == at::kFloat, "codec {} takes float32 tensors", spec_);
  if (x.numel() == 0) return;
  const at::Tensor dense = x.to(at::kCPU).contiguous();
  do_encode(elements_of(dense), meta_of(x), context, out);
}

at::Tensor Codec::decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const {
  at::Tensor out =
      meta.elements() == 0 ? at::empty(meta.shape, at::kFloat) : do_decode_tensor(in, meta, context);
  expect_end(in);
  return out;
}

void Codec::expect_end(const ByteReader& in) const {
  if (in.left() != 0) throw WireError("{} bytes follow the payload of codec {}", in.left(), spec_);
}

at::Tensor Codec::do_decode_tensor(ByteReader& in, const MessageMeta& meta,
                                   const MessageContext& context) const {
  at::Tensor out = at::empty(meta.shape, at::kFloat);
  do_decode(in, meta, context, {out.data_ptr<float>(), meta.elements()});
  return out;
}

at::Tensor Codec::reference(const at::Tensor& /*x*/) const { return {}; }

at::Tensor Codec::reconstruct(const at::Tensor& x, const MessageContext& context) const {
  const MessageMeta meta = meta_of(x);
  Buffer payload(payload_size(meta).bound);
  payload.resize(payload.capacity());
  ByteWriter out(payload.bytes());
  encode(x, context, out);
  ByteReader in(payload.bytes().first(out.used()));
  return decode(in, meta, context).to(x.device());
}

}  // namespace strait
