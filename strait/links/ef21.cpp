#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/links/row_feedback.h"
#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// Sends m = C(x - g) and moves the estimate on: g = g + D(m).
class Ef21Encoder : public Encoder {
 public:
  /// C is `compressor`; `codec` where it is that codec and nothing else, or null.
  Ef21Encoder(std::unique_ptr<Encoder> compressor, std::shared_ptr<const Codec> codec)
      : compressor_(std::move(compressor)), codec_(std::move(codec)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    at::Tensor estimate = estimate_.rows(meta_of(x), context);
    if (const Sparsifier* sparsifier = fused(codec_.get(), meta_of(x), context)) {
      IndexSet indices = sparsifier->write_difference(x.to(at::kCPU).contiguous(), estimate, context, out);
      estimate_.set_rows(estimate, context);
      return {std::move(indices), {}, {}};
    }
    MessageContext wanted = context;
    wanted.wants_received = true;
    MessageReport report = compressor_->encode(x.to(at::kCPU).sub(estimate), wanted, out);
    report.received = estimate.add(report.received);
    expect_finite(report.received);
    estimate_.set_rows(report.received, context);
    return report;
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    compressor_->encode_frozen(x.to(at::kCPU).sub(estimate_.rows(meta_of(x), context)), context, out);
  }
  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
  }
  void visit_state(StateVisitor& visitor) override {
    estimate_.visit("estimate", visitor);
    compressor_->visit_state(visitor);
  }

 private:
  std::unique_ptr<Encoder> compressor_;
  std::shared_ptr<const Codec> codec_;
  SlotState estimate_;
};

/// Moves its own estimate on by the same additions in the same order, and gives a copy of it.
class Ef21Decoder : public Decoder {
 public:
  Ef21Decoder(std::unique_ptr<Decoder> compressor, std::shared_ptr<const Codec> codec)
      : compressor_(std::move(compressor)), codec_(std::move(codec)) {}

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    at::Tensor estimate = estimate_.rows(meta, context);
    if (const Sparsifier* sparsifier = fused(codec_.get(), meta, context)) {
      IndexSet indices = sparsifier->read_difference(in, estimate, context);
      estimate_.set_rows(estimate, context);
      return {estimate.clone(), std::move(indices)};
    }
    auto [difference, indices] = compressor_->decode(in, meta, context);
    const at::Tensor next = estimate.add(difference);
    estimate_.set_rows(next.clone(), context);
    return {next, std::move(indices)};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return estimate_.rows(meta, context).add(compressor_->decode_frozen(in, meta, context));
  }
  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
  }
  void visit_state(StateVisitor& visitor) override {
    estimate_.visit("estimate", visitor);
    compressor_->visit_state(visitor);
  }

 private:
  std::unique_ptr<Decoder> compressor_;
  std::shared_ptr<const Codec> codec_;
  SlotState estimate_;
};

/// EF21 (Richtarik et al. 2021; docs/operators.md, "Feedback"): the receiver sees the estimate g, which both
/// ends hold with the same bits.
class Ef21 : public RowFeedback {
 public:
  using RowFeedback::RowFeedback;
  std::shared_ptr<const Link> around(std::shared_ptr<const Link> compressor) const override {
    return std::make_shared<Ef21>(id(), std::move(compressor));
  }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<Ef21Encoder>(compressor().make_encoder(), fusable());
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return std::make_unique<Ef21Decoder>(compressor().make_decoder(), fusable());
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto compress = compressor().reference(std::move(apply));
    if (!compress) return {};
    return [compress = std::move(compress), estimate = at::Tensor()](const at::Tensor& x,
                                                                     const MessageContext& context) mutable {
      if (!estimate.defined()) estimate = at::zeros_like(x);
      estimate = estimate.add(compress(x.sub(estimate), context));
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
