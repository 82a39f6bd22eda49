#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/links/slot_feedback.h"
#include "strait/links/step_size.h"

namespace strait {
namespace {

/// v moved on by a share of x; the products and the sum are rounded to float32 one by one.
at::Tensor averaged(const at::Tensor& average, const at::Tensor& x, float eta) {
  return eta == 1 ? x : average.mul(1 - eta).add_(x.mul(eta));
}

/// Hands on v = (1 - eta) v + eta x in place of x.
class AveragingEncoder : public Encoder {
 public:
  AveragingEncoder(std::unique_ptr<Encoder> inner, float eta, std::unique_ptr<SlotState> average)
      : inner_(std::move(inner)), eta_(eta), average_(std::move(average)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    const at::Tensor next = averaged(average_->rows(meta_of(x), context), x, eta_);
    MessageReport report = inner_->encode(next, context, out);
    average_->set_rows(next.is_same(x) ? x.clone() : next, context);
    return report;
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    inner_->encode_frozen(averaged(average_->evaluation_rows(meta_of(x), context), x, eta_), context, out);
  }
  void observe(const at::Tensor& x, const MessageContext& context) override { inner_->observe(x, context); }
  void prefetch(std::span<const int64_t> ids) override {
    average_->prefetch(ids);
    inner_->prefetch(ids);
  }
  void visit_state(StateVisitor& visitor) override {
    average_->visit("average", visitor);
    inner_->visit_state(visitor);
  }

 private:
  std::unique_ptr<Encoder> inner_;
  float eta_;
  std::unique_ptr<SlotState> average_;
};

/// EF21-SGDM (Fatkhullin et al. 2023; docs/operators.md, "Feedback"): ef21 of a moving average that the sender
/// keeps. With eta = 1 it is ef21.
class AveragedFeedback : public SenderFeedback {
 public:
  /// `ef21` is the link that sends the average.
  AveragedFeedback(uint16_t id, const std::shared_ptr<const Link>& ef21, SlotOptions slots, float eta)
      : SenderFeedback(id, ef21, std::move(slots)), eta_(eta) {}
  std::shared_ptr<Link> around(std::shared_ptr<const Link> compressor) const override {
    auto inner = this->compressor().around(std::move(compressor));
    return inner == nullptr ? nullptr : std::make_shared<AveragedFeedback>(id(), inner, slot_options(), eta_);
  }
  MessageOperator reference(ApplyCodec apply) const override {
    auto inner = compressor().reference(std::move(apply));
    if (!inner) return {};
    return [inner = std::move(inner), kept = keeping(), eta = eta_, average = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      if (!average.defined()) average = at::zeros_like(x);
      const at::Tensor next = average.mul(1 - eta).add(x.mul(eta));
      at::Tensor received = inner(next, context);
      average = kept(next, context);
      return received;
    };
  }

 protected:
  std::unique_ptr<Encoder> encoder_around(std::unique_ptr<Encoder> inner) const override {
    return std::make_unique<AveragingEncoder>(std::move(inner), eta_, make_slot_state(slot_options()));
  }

 private:
  float eta_;
};

}  // namespace

std::unique_ptr<Link> make_ef21_sgdm(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  const float eta = step_size_argument(spec, "eta");
  spec.finish();
  return std::make_unique<AveragedFeedback>(id, make_link(std::move(codec), "ef21"), SlotOptions{}, eta);
}

}  // namespace strait
