#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// Sends m = C(x - g) and moves the estimate on: g = g + D(m).
class Ef21Encoder : public Encoder {
 public:
  explicit Ef21Encoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  void encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    if (const Selective* selective = fused(*codec_, meta_of(x), context)) {
      at::Tensor estimate = estimate_.rows(meta_of(x), context);
      selective->encode_difference(x.to(at::kCPU).contiguous(), estimate, context, out);
      estimate_.set_rows(estimate, context);
      return;
    }
    const at::Tensor estimate = estimate_.rows(meta_of(x), context);
    const at::Tensor received = encode_and_decode(*codec_, x.to(at::kCPU).sub(estimate), context, out);
    const at::Tensor next = estimate.add(received);
    expect_finite(next);
    if (context.trace != nullptr) context.trace->received = next;
    estimate_.set_rows(next, context);
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    codec_->encode(x.to(at::kCPU).sub(estimate_.rows(meta_of(x), context)), context, out);
  }
  void visit_state(StateVisitor& visitor) override { estimate_.visit("estimate", visitor); }

 private:
  std::shared_ptr<const Codec> codec_;
  SlotState estimate_;
};

/// Moves its own estimate on by the same additions in the same order, and gives a copy of it.
class Ef21Decoder : public Decoder {
 public:
  explicit Ef21Decoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  at::Tensor decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    if (const Selective* selective = fused(*codec_, meta, context)) {
      at::Tensor estimate = estimate_.rows(meta, context);
      selective->decode_difference(in, estimate, context);
      estimate_.set_rows(estimate, context);
      return estimate.clone();
    }
    at::Tensor next = decode_frozen(in, meta, context);
    estimate_.set_rows(next.clone(), context);
    return next;
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return estimate_.rows(meta, context).add(codec_->decode(in, meta, context));
  }
  void visit_state(StateVisitor& visitor) override { estimate_.visit("estimate", visitor); }

 private:
  std::shared_ptr<const Codec> codec_;
  SlotState estimate_;
};

/// EF21 (Richtarik et al. 2021; docs/operators.md, "Feedback"): the receiver sees the estimate g, which both
/// ends hold with the same bits.
class Ef21 : public Link {
 public:
  using Link::Link;
  Slots slots() const override { return Slots::rows; }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<Ef21Encoder>(shared_codec());
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return std::make_unique<Ef21Decoder>(shared_codec());
  }
  MessageOperator reference(ApplyCodec apply) const override {
    return [codec = shared_codec(), apply = std::move(apply), estimate = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      if (!estimate.defined()) estimate = at::zeros_like(x);
      estimate = estimate.add(apply(*codec, x.sub(estimate), context));
      return estimate;
    };
  }
};

}  // namespace

std::unique_ptr<Link> make_ef21(std::shared_ptr<const Codec> codec, const StoreOptions& /*store*/) {
  return std::make_unique<Ef21>(std::move(codec));
}

}  // namespace strait
