#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/codecs/fused_feedback.h"
#include "strait/links/slot_feedback.h"
#include "strait/links/step_size.h"

namespace strait {
namespace {

/// How much of the residual a message takes up, and how the residual moves.
struct ResidualRule {
  float beta = 1;
  float decay = 1;
};

/// Sends m = C(x + e) and keeps of what was lost: e = (1 - beta) e + beta (x + e - D(m)), where e is first
/// multiplied by the decay.
class EfEncoder : public Encoder {
 public:
  /// C is `compressor`; `codec` where it is that codec and nothing else, or null.
  EfEncoder(std::unique_ptr<Encoder> compressor, std::shared_ptr<const Codec> codec, ResidualRule rule,
            std::unique_ptr<SlotState> residual)
      : compressor_(std::move(compressor)),
        codec_(std::move(codec)),
        rule_(rule),
        residual_(std::move(residual)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    const at::Tensor residual = decayed(residual_->rows(meta_of(x), context));
    if (const FusedFeedback* operation = fused(codec_.get(), meta_of(x), context)) {
      at::Tensor left = residual.is_cpu() ? residual_->room(meta_of(x)) : at::Tensor();
      IndexSet indices = operation->write_sum(x.contiguous(), residual, left, context, out);
      keep(residual, left, context);
      return {std::move(indices), {}, {}};
    }
    const at::Tensor sum = x.add(residual);
    MessageContext wanted = context;
    wanted.wants_received = true;
    MessageReport report = compressor_->encode(sum, wanted, out);
    report.residual = keep(residual, sum.sub(report.received), context);
    return report;
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    compressor_->encode_frozen(x.add(decayed(residual_->evaluation_rows(meta_of(x), context))), context, out);
  }
  void observe(const at::Tensor& x, const MessageContext& context) override {
    compressor_->observe(x, context);
  }
  void prefetch(std::span<const int64_t> ids) override { residual_->prefetch(ids); }
  void visit_state(StateVisitor& visitor) override {
    residual_->visit("residual", visitor);
    compressor_->visit_state(visitor);
  }

 private:
  at::Tensor decayed(const at::Tensor& residual) const {
    return rule_.decay == 1 ? residual : residual.mul(rule_.decay);
  }

  /// Moves the state on by what a message lost, and gives what it is then. 1 - beta, the products and their sum
  /// are rounded to float32 one by one.
  at::Tensor keep(const at::Tensor& residual, const at::Tensor& lost, const MessageContext& context) {
    at::Tensor next = lost;
    if (rule_.beta != 1) {
      next = residual.mul(1 - rule_.beta).add_(lost.mul(rule_.beta));
      expect_finite(next);
    }
    residual_->set_rows(next, context);
    return next;
  }

  std::unique_ptr<Encoder> compressor_;
  std::shared_ptr<const Codec> codec_;
  ResidualRule rule_;
  std::unique_ptr<SlotState> residual_;
};

/// Error feedback (Seide et al. 2014), with beta below 1 that of LoCo (Xie et al. 2024), a moving average of
/// what was lost; docs/operators.md, "Feedback". The receiver sees D(m), as without feedback; the state is the
/// sender's, and the compressor's where C is one that has state.
class Ef : public SenderFeedback {
 public:
  /// Around a codec, or around a compressor with state.
  template <class Compressor>
  Ef(uint16_t id, const std::shared_ptr<const Compressor>& compressor, SlotOptions slots, ResidualRule rule)
      : SenderFeedback(id, compressor, std::move(slots)), rule_(rule) {}
  std::shared_ptr<Link> around(std::shared_ptr<const Link> compressor) const override {
    if (!fits(*compressor)) return nullptr;
    return std::make_shared<Ef>(id(), compressor, slot_options(), rule_);
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto compress = compressor().reference(std::move(apply));
    if (!compress) return {};
    return [compress = std::move(compress), kept = keeping(), rule = rule_, residual = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      residual = residual.defined() ? residual.mul(rule.decay) : at::zeros_like(x);
      const at::Tensor sum = x.add(residual);
      at::Tensor received = compress(sum, context);
      const at::Tensor lost = sum.sub(received);
      residual = kept(rule.beta == 1 ? lost : residual.mul(1 - rule.beta).add(lost.mul(rule.beta)), context);
      return received;
    };
  }

 protected:
  std::unique_ptr<Encoder> encoder_around(std::unique_ptr<Encoder> compressor) const override {
    return std::make_unique<EfEncoder>(std::move(compressor), fusable(), rule_,
                                       make_slot_state(slot_options()));
  }

 private:
  ResidualRule rule_;
};

float beta_of(OperatorSpec& spec) {
  const std::optional<std::string>& text = spec.optional_argument();
  if (!text) return 1;
  const std::optional<float> beta = parse_step_size(*text);
  if (!beta || *beta == 0) spec.reject("beta", *text, "a decimal above 0 and at most 1");
  return *beta;
}

float decay_of(OperatorSpec& spec) {
  const std::string text = spec.option("decay", "1");
  const std::optional<float> decay = parse_step_size(text);
  if (!decay || *decay == 0) spec.reject("decay", text, "a decimal above 0 and at most 1");
  return *decay;
}

}  // namespace

std::unique_ptr<Link> make_ef(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  const ResidualRule rule{beta_of(spec), decay_of(spec)};
  SlotOptions slots = read_slot_options(spec, /*has_fill=*/false);
  spec.finish();
  return std::make_unique<Ef>(id, codec, std::move(slots), rule);
}

}  // namespace strait
