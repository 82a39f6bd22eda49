#pragma once

#include <memory>
#include <utility>

#include "strait/codecs/codec.h"
#include "strait/codecs/value_format.h"

namespace strait {

/// A codec whose payload is the whole tensor as one list of values, nothing else, each coded by itself.
class ValueCodec : public Codec {
 public:
  explicit ValueCodec(std::unique_ptr<const ValueFormat> values) : values_(std::move(values)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& /*context*/) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    return values_->reconstruct(x);
  }

  bool is_row_wise() const override { return true; }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {values_->size(meta.elements()), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    values_->write(x, out.claim(values_->size(x.size())));
  }

  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    values_->read(in.take(values_->size(out.size())), out);
  }

 private:
  std::unique_ptr<const ValueFormat> values_;
};

}  // namespace strait
