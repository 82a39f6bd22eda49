#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// Sends m = C(x - g) and moves the estimate on: g = g + D(m).
class Ef21Encoder : public Encoder {
 public:
  explicit Ef21Encoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    at::Tensor estimate = estimate_.rows(meta_of(x), context);
    if (const Sparsifier* sparsifier = fused(*codec_, meta_of(x), context)) {
      IndexSet indices = sparsifier->write_difference(x.to(at::kCPU).contiguous(), estimate, context, out);
      estimate_.set_rows(estimate, context);
      return {std::move(indices), {}, {}};
    }
    auto [difference, indices] = write_and_read(*codec_, x.to(at::kCPU).sub(estimate), context, out);
    const at::Tensor next = estimate.add(difference);
    expect_finite(next);
    estimate_.set_rows(next, context);
    return {std::move(indices), next, {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    codec_->write(x.to(at::kCPU).sub(estimate_.rows(meta_of(x), context)), context, out);
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

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    at::Tensor estimate = estimate_.rows(meta, context);
    if (const Sparsifier* sparsifier = fused(*codec_, meta, context)) {
      IndexSet indices = sparsifier->read_difference(in, estimate, context);
      estimate_.set_rows(estimate, context);
      return {estimate.clone(), std::move(indices)};
    }
    auto [difference, indices] = codec_->read(in, meta, context);
    const at::Tensor next = estimate.add(difference);
    estimate_.set_rows(next.clone(), context);
    return {next, std::move(indices)};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return estimate_.rows(meta, context).add(codec_->read(in, meta, context).tensor);
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

std::unique_ptr<Link> make_ef21(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<Ef21>(id, std::move(codec));
}

}  // namespace strait
