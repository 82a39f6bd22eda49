#include "strait/links/slot_state.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace strait {

at::Tensor SlotState::rows(const MessageMeta& meta, const MessageContext& context) const {
  const auto first = static_cast<int64_t>(context.first_row);
  const auto count = static_cast<int64_t>(meta.rows());
  const int64_t there = all_.defined() ? std::clamp<int64_t>(all_.size(0) - first, 0, count) : 0;
  STRAIT_CHECK(!all_.defined() || all_.sizes().slice(1) == at::IntArrayRef(meta.shape).slice(1),
               "the samples of a link changed their shape");
  if (there == count && all_.defined()) return all_.narrow(0, first, count);
  at::Tensor padded = at::zeros(meta.shape, at::kFloat);
  if (there > 0) padded.narrow(0, 0, there).copy_(all_.narrow(0, first, there));
  return padded;
}

at::Tensor SlotState::own_rows(const MessageMeta& meta, const MessageContext& context) {
  const auto first = static_cast<int64_t>(context.first_row);
  const int64_t end = first + static_cast<int64_t>(meta.rows());
  if (!all_.defined() || all_.size(0) < end) {
    auto shape = meta.shape;
    shape[0] = end;
    at::Tensor grown = at::zeros(shape, at::kFloat);
    if (all_.defined()) grown.narrow(0, 0, all_.size(0)).copy_(all_);
    all_ = grown;
  }
  STRAIT_CHECK(all_.sizes().slice(1) == at::IntArrayRef(meta.shape).slice(1),
               "the samples of a link changed their shape");
  return all_.narrow(0, first, end - first);
}

void SlotState::set_rows(const at::Tensor& value, const MessageContext& context) {
  own_rows(meta_of(value), context).copy_(value);
}

const Selective* fused(const Codec& codec, const MessageMeta& meta, const MessageContext& context) {
  const Selective* selective = codec.selective();
  return context.trace == nullptr && selective != nullptr && selective->is_partial(meta) ? selective : nullptr;
}

at::Tensor encode_and_decode(const Codec& codec, const at::Tensor& x, const MessageContext& context,
                             ByteWriter& out) {
  ByteWriter part(out.rest());
  codec.encode(x, context, part);
  ByteReader in(out.claim(part.used()));
  return codec.decode(in, meta_of(x), context);
}

}  // namespace strait
