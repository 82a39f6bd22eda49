#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/codecs/fused_feedback.h"
#include "strait/links/slot_feedback.h"
#include "strait/links/step_size.h"

namespace strait {
namespace {

/// The estimate behind a message of which `received` = D(m) comes and which shows `seen` = g + D(m). The
/// product and the sum are rounded to float32 one by one; it is finite where what is seen is.
at::Tensor estimate_after(const at::Tensor& estimate, const at::Tensor& received, const at::Tensor& seen,
                          float alpha) {
  return alpha == 1 ? seen : estimate.add(received.mul(alpha));
}

/// How the estimate moves.
struct EstimateRule {
  float alpha = 1;
  bool fills_early = false;  ///< estimates are the last message of the warm-up
};

/// What the two ends share: the estimate g, and how it is filled. `End` is Encoder or Decoder.
template <class End>
class EstimateEnd : public End {
 public:
  /// C is `compressor`; `codec` where it is that codec and nothing else and alpha is 1, or null.
  EstimateEnd(std::unique_ptr<End> compressor, std::shared_ptr<const Codec> codec, EstimateRule rule,
              std::unique_ptr<SlotState> estimate)
      : compressor_(std::move(compressor)),
        codec_(std::move(codec)),
        rule_(rule),
        estimate_(std::move(estimate)) {}

  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
    if (rule_.fills_early) estimate_->set_rows(x, context);
  }
  void prefetch(std::span<const int64_t> ids) override { estimate_->prefetch(ids); }
  void visit_state(StateVisitor& visitor) override {
    estimate_->visit("estimate", visitor);
    compressor_->visit_state(visitor);
  }

 protected:
  std::unique_ptr<End> compressor_;
  std::shared_ptr<const Codec> codec_;
  EstimateRule rule_;
  std::unique_ptr<SlotState> estimate_;
};

/// Sends m = C(x - g) and moves the estimate on: g = g + alpha D(m).
class EstimateEncoder : public EstimateEnd<Encoder> {
 public:
  using EstimateEnd::EstimateEnd;

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    at::Tensor estimate = estimate_->rows(meta_of(x), context);
    if (const FusedFeedback* operation = fused(codec_.get(), meta_of(x), context)) {
      IndexSet indices = operation->write_difference(x.contiguous(), estimate, context, out);
      estimate_->set_rows(estimate, context);
      return {std::move(indices), {}, {}};
    }
    MessageContext wanted = context;
    wanted.wants_received = true;
    MessageReport report = compressor_->encode(x.sub(estimate), wanted, out);
    const at::Tensor seen = estimate.add(report.received);
    expect_finite(seen);
    estimate_->set_rows(estimate_after(estimate, report.received, seen, rule_.alpha), context);
    report.received = seen;
    return report;
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    compressor_->encode_frozen(x.sub(estimate_->evaluation_rows(meta_of(x), context)), context, out);
  }
};

/// Gives g + D(m) and moves its own estimate on by the same operations in the same order.
class EstimateDecoder : public EstimateEnd<Decoder> {
 public:
  using EstimateEnd::EstimateEnd;

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    at::Tensor estimate = estimate_->rows(meta, context);
    if (const FusedFeedback* operation = fused(codec_.get(), meta, context)) {
      IndexSet indices = operation->read_difference(in, estimate, context);
      estimate_->set_rows(estimate, context);
      return {estimate.clone(), std::move(indices)};
    }
    auto [difference, indices] = compressor_->decode(in, meta, context);
    const at::Tensor seen = estimate.add(difference);
    const at::Tensor next = estimate_after(estimate, difference, seen, rule_.alpha);
    estimate_->set_rows(next.is_same(seen) ? seen.clone() : next, context);
    return {seen, std::move(indices)};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return estimate_->evaluation_rows(meta, context).add(compressor_->decode_frozen(in, meta, context));
  }
};

/// DIANA (Mishchenko et al. 2019; docs/operators.md, "Feedback"): both ends hold an estimate g with the same
/// bits, and the receiver sees it moved on by all of the message. With alpha = 1 the receiver sees the estimate
/// itself, which is EF21 (Richtarik et al. 2021).
class EstimateFeedback : public CompressorFeedback {
 public:
  /// Around a codec, or around a compressor with state.
  template <class Compressor>
  EstimateFeedback(uint16_t id, const std::shared_ptr<const Compressor>& compressor, const SlotOptions& slots,
                   float alpha)
      : CompressorFeedback(id, compressor, slots),
        rule_{.alpha = alpha, .fills_early = slots.store.fills_early()} {}
  std::shared_ptr<Link> around(std::shared_ptr<const Link> compressor) const override {
    if (!fits(*compressor)) return nullptr;
    return std::make_shared<EstimateFeedback>(id(), compressor, slot_options(), rule_.alpha);
  }
  std::unique_ptr<Encoder> make_encoder() const override {
    return encoder_of(compressor().make_encoder(), make_slot_state(slot_options()));
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return decoder_of(compressor().make_decoder(), make_slot_state(slot_options()));
  }
  LinkEnds make_ends() const override {
    LinkEnds ends = compressor().make_ends();
    SlotEnds estimates = make_slot_ends(slot_options());
    return {encoder_of(std::move(ends.encoder), std::move(estimates.sender)),
            decoder_of(std::move(ends.decoder), std::move(estimates.receiver))};
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto compress = compressor().reference(std::move(apply));
    if (!compress) return {};
    return [compress = std::move(compress), kept = keeping(), alpha = rule_.alpha, estimate = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      if (!estimate.defined()) estimate = at::zeros_like(x);
      const at::Tensor received = compress(x.sub(estimate), context);
      at::Tensor seen = estimate.add(received);
      estimate = kept(estimate.add(received.mul(alpha)), context);
      return seen;
    };
  }

 private:
  std::unique_ptr<Encoder> encoder_of(std::unique_ptr<Encoder> compressor,
                                      std::unique_ptr<SlotState> estimate) const {
    return std::make_unique<EstimateEncoder>(std::move(compressor), fused_codec(), rule_, std::move(estimate));
  }
  std::unique_ptr<Decoder> decoder_of(std::unique_ptr<Decoder> compressor,
                                      std::unique_ptr<SlotState> estimate) const {
    return std::make_unique<EstimateDecoder>(std::move(compressor), fused_codec(), rule_, std::move(estimate));
  }
  /// FusedFeedback moves the estimate by all of a message.
  std::shared_ptr<const Codec> fused_codec() const { return rule_.alpha == 1 ? fusable() : nullptr; }

  EstimateRule rule_;
};

}  // namespace

std::unique_ptr<Link> make_ef21(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  const SlotOptions slots = read_slot_options(spec, /*has_fill=*/true);
  spec.finish();
  return std::make_unique<EstimateFeedback>(id, codec, slots, 1.0F);
}

std::unique_ptr<Link> make_diana(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  constexpr std::string_view kExpected = "a decimal from 0 to 1";
  const std::string& text = spec.argument(kExpected);
  const std::optional<float> alpha = parse_step_size(text);
  if (!alpha) spec.reject("alpha", text, kExpected);
  const SlotOptions slots = read_slot_options(spec, /*has_fill=*/true);
  spec.finish();
  return std::make_unique<EstimateFeedback>(id, codec, slots, *alpha);
}

}  // namespace strait
