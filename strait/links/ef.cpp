#include "strait/links/row_feedback.h"
#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// Sends m = C(x + e) and keeps what was lost: e = x + e - D(m).
class EfEncoder : public Encoder {
 public:
  /// C is `compressor`; `codec` where it is that codec and nothing else, or null.
  EfEncoder(std::unique_ptr<Encoder> compressor, std::shared_ptr<const Codec> codec)
      : compressor_(std::move(compressor)), codec_(std::move(codec)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    const at::Tensor residual = residual_.rows(meta_of(x), context);
    if (const Sparsifier* sparsifier = fused(codec_.get(), meta_of(x), context)) {
      at::Tensor left = residual_.room(meta_of(x));
      IndexSet indices = sparsifier->write_sum(x.to(at::kCPU).contiguous(), residual, left, context, out);
      residual_.set_rows(left, context);
      return {std::move(indices), {}, {}};
    }
    const at::Tensor sum = x.to(at::kCPU).add(residual);
    MessageContext wanted = context;
    wanted.wants_received = true;
    MessageReport report = compressor_->encode(sum, wanted, out);
    report.residual = sum.sub(report.received);
    residual_.set_rows(report.residual, context);
    return report;
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    compressor_->encode_frozen(x.to(at::kCPU).add(residual_.rows(meta_of(x), context)), context, out);
  }
  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
  }
  void visit_state(StateVisitor& visitor) override {
    residual_.visit("residual", visitor);
    compressor_->visit_state(visitor);
  }

 private:
  std::unique_ptr<Encoder> compressor_;
  std::shared_ptr<const Codec> codec_;
  SlotState residual_;
};

/// Error feedback (Seide et al. 2014; docs/operators.md, "Feedback"): the receiver sees D(m), as without
/// feedback; the state is the sender's, and the compressor's where C is one that has state.
class Ef : public RowFeedback {
 public:
  using RowFeedback::RowFeedback;
  std::shared_ptr<const Link> around(std::shared_ptr<const Link> compressor) const override {
    return std::make_shared<Ef>(id(), std::move(compressor));
  }
  std::unique_ptr<Encoder> make_encoder() const override { return encoder_of(compressor().make_encoder()); }
  std::unique_ptr<Decoder> make_decoder() const override { return compressor().make_decoder(); }
  LinkEnds make_ends() const override {
    LinkEnds ends = compressor().make_ends();
    return {encoder_of(std::move(ends.encoder)), std::move(ends.decoder)};
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto compress = compressor().reference(std::move(apply));
    if (!compress) return {};
    return [compress = std::move(compress), residual = at::Tensor()](const at::Tensor& x,
                                                                     const MessageContext& context) mutable {
      const at::Tensor sum = residual.defined() ? x.add(residual) : x;
      at::Tensor received = compress(sum, context);
      residual = sum.sub(received);
      return received;
    };
  }

 private:
  std::unique_ptr<Encoder> encoder_of(std::unique_ptr<Encoder> compressor) const {
    return std::make_unique<EfEncoder>(std::move(compressor), fusable());
  }
};

}  // namespace

std::unique_ptr<Link> make_ef(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<Ef>(id, std::move(codec));
}

}  // namespace strait
