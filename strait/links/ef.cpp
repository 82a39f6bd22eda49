#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// Sends m = C(x + e) and keeps what was lost: e = x + e - D(m).
class EfEncoder : public Encoder {
 public:
  explicit EfEncoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    const at::Tensor residual = residual_.rows(meta_of(x), context);
    if (const Sparsifier* sparsifier = fused(*codec_, meta_of(x), context)) {
      at::Tensor left = residual_.room(meta_of(x));
      IndexSet indices = sparsifier->write_sum(x.to(at::kCPU).contiguous(), residual, left, context, out);
      residual_.set_rows(left, context);
      return {std::move(indices), {}, {}};
    }
    const at::Tensor sum = x.to(at::kCPU).add(residual);
    auto [received, indices] = write_and_read(*codec_, sum, context, out);
    const at::Tensor left = sum.sub(received);
    residual_.set_rows(left, context);
    return {std::move(indices), received, left};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    codec_->write(x.to(at::kCPU).add(residual_.rows(meta_of(x), context)), context, out);
  }
  void visit_state(StateVisitor& visitor) override { residual_.visit("residual", visitor); }

 private:
  std::shared_ptr<const Codec> codec_;
  SlotState residual_;
};

/// Error feedback (Seide et al. 2014; docs/operators.md, "Feedback"): the receiver sees D(m), as without
/// feedback; the state is the sender's.
class Ef : public Link {
 public:
  using Link::Link;
  Slots slots() const override { return Slots::rows; }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<EfEncoder>(shared_codec()); }
  std::unique_ptr<Decoder> make_decoder() const override { return make_plain_decoder(shared_codec()); }
  MessageOperator reference(ApplyCodec apply) const override {
    return [codec = shared_codec(), apply = std::move(apply), residual = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      const at::Tensor sum = residual.defined() ? x.add(residual) : x;
      at::Tensor received = apply(*codec, sum, context);
      residual = sum.sub(received);
      return received;
    };
  }
};

}  // namespace

std::unique_ptr<Link> make_ef(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<Ef>(id, std::move(codec));
}

}  // namespace strait
