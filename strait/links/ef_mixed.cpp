#include <ATen/core/ivalue.h>
#include <ATen/ops/zeros_like.h>

#include "strait/codecs/sparsifier.h"
#include "strait/links/slot_feedback.h"

namespace strait {
namespace {

/// What crosses: the length of the first part, u64, and two messages of operators that together keep the k of
/// one: the larger half of it of x, the smaller of the residual. The receiver sees their sum.
class Halves {
 public:
  explicit Halves(const Sparsifier& codec)
      : of_x_(codec.half(Sparsifier::Half::larger)), of_residual_(codec.half(Sparsifier::Half::smaller)) {}

  const Codec& of_x() const { return *of_x_; }
  const Codec& of_residual() const { return *of_residual_; }

  PayloadSize payload_size(const MessageMeta& meta) const {
    return {sizeof(uint64_t) + of_x_->payload_size(meta).bound + of_residual_->payload_size(meta).bound, false};
  }
  void write(const at::Tensor& x, const at::Tensor& residual, const MessageContext& context,
             ByteWriter& out) const {
    ByteWriter length(out.claim(sizeof(uint64_t)));
    const size_t before = out.used();
    of_x_->write(x, context, out);
    length.put(static_cast<uint64_t>(out.used() - before));
    of_residual_->write(residual, context, out);
  }
  at::Tensor read(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const {
    ByteReader first(in.take(in.get<uint64_t>()));
    const at::Tensor x = of_x_->read(first, meta, context).tensor;
    return x.add(of_residual_->read(in, meta, context).tensor);
  }

 private:
  std::shared_ptr<const Codec> of_x_;
  std::shared_ptr<const Codec> of_residual_;
};

/// Keeps what was lost: e = x + e - m.
class EfMixedEncoder : public Encoder {
 public:
  EfMixedEncoder(std::shared_ptr<const Halves> halves, std::unique_ptr<SlotState> residual)
      : halves_(std::move(halves)), residual_(std::move(residual)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    const at::Tensor residual = residual_->rows(meta_of(x), context);
    ByteWriter part(out.rest());
    halves_->write(x, residual, context, part);
    ByteReader in(out.claim(part.used()));
    const at::Tensor received = halves_->read(in, meta_of(x), context);
    const at::Tensor left = x.add(residual).sub(received);
    expect_finite(left);
    residual_->set_rows(left, context);
    return {{}, received, left};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    halves_->write(x, residual_->evaluation_rows(meta_of(x), context), context, out);
  }
  void prefetch(std::span<const int64_t> ids) override { residual_->prefetch(ids); }
  void visit_state(StateVisitor& visitor) override { residual_->visit("residual", visitor); }

 private:
  std::shared_ptr<const Halves> halves_;
  std::unique_ptr<SlotState> residual_;
};

class EfMixedDecoder : public Decoder {
 public:
  explicit EfMixedDecoder(std::shared_ptr<const Halves> halves) : halves_(std::move(halves)) {}

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    return {halves_->read(in, meta, context), {}};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return halves_->read(in, meta, context);
  }

 private:
  std::shared_ptr<const Halves> halves_;
};

/// The paper's EF-mixed (section 2.4; docs/operators.md, "Feedback"): half of the k positions are the
/// message's largest, half the residual's.
class EfMixed : public SlotFeedback {
 public:
  EfMixed(uint16_t id, std::shared_ptr<const Codec> codec, SlotOptions slots, const Sparsifier& sparsifier)
      : SlotFeedback(id, std::move(codec), std::move(slots)), halves_(std::make_shared<Halves>(sparsifier)) {}

  bool sends_codec_messages() const override { return false; }
  std::vector<SparseShape> index_sets(const MessageMeta& meta) const override {
    return {halves_->of_x().sparsifier()->shape_of(meta), halves_->of_residual().sparsifier()->shape_of(meta)};
  }
  PayloadSize payload_size(const MessageMeta& meta) const override { return halves_->payload_size(meta); }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<EfMixedEncoder>(halves_, make_slot_state(slot_options()));
  }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<EfMixedDecoder>(halves_); }
  MessageOperator reference(ApplyCodec apply) const override {
    return [halves = halves_, apply = std::move(apply), kept = keeping(), residual = at::Tensor()](
               const at::Tensor& x, const MessageContext& context) mutable {
      if (!residual.defined()) residual = at::zeros_like(x);
      at::Tensor received =
          apply(halves->of_x(), x, context).add(apply(halves->of_residual(), residual, context));
      residual = kept(x.add(residual).sub_(received), context);
      return received;
    };
  }

 private:
  std::shared_ptr<const Halves> halves_;
};

}  // namespace

std::unique_ptr<Link> make_ef_mixed(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  SlotOptions slots = read_slot_options(spec, /*has_fill=*/false);
  spec.finish();
  const Sparsifier* sparsifier = codec->sparsifier();
  if (sparsifier == nullptr || sparsifier->half(Sparsifier::Half::larger) == nullptr) {
    throw InputError(
        "feedback \"ef-mixed\" needs a codec that selects the largest elements, such as topk:0.1, not \"{}\"",
        codec->spec());
  }
  return std::make_unique<EfMixed>(id, std::move(codec), std::move(slots), *sparsifier);
}

}  // namespace strait
