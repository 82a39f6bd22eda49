#include "strait/links/slot_state.h"

namespace strait {
namespace {

class PlainEncoder : public Encoder {
 public:
  explicit PlainEncoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    if (!context.wants_received) return {codec_->write(x, context, out), {}, {}};
    auto [received, indices] = write_and_read(*codec_, x, context, out);
    return {std::move(indices), received, {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    codec_->write(x, context, out);
  }

 private:
  std::shared_ptr<const Codec> codec_;
};

/// Carries what the next message of a codec with a warm start begins with.
class WarmEncoder : public Encoder {
 public:
  explicit WarmEncoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    ByteWriter part(out.rest());
    codec_->warm_start()->write_from(start_, x, context, part);
    ByteReader in(out.claim(part.used()));
    return {{}, context.wants_received ? codec_->read(in, meta_of(x), context).tensor : at::Tensor(), {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const override {
    at::Tensor start = start_.defined() ? start_.clone() : start_;
    codec_->warm_start()->write_from(start, x, context, out);
  }
  void visit_state(StateVisitor& visitor) override { visitor.tensor("start", start_); }

 private:
  std::shared_ptr<const Codec> codec_;
  at::Tensor start_;
};

class PlainDecoder : public Decoder {
 public:
  explicit PlainDecoder(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    return codec_->read(in, meta, context);
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return codec_->read(in, meta, context).tensor;
  }

 private:
  std::shared_ptr<const Codec> codec_;
};

/// What the receiver sees of messages that a warm encoder writes.
MessageOperator warm_operator(const std::shared_ptr<const Codec>& codec) {
  return [codec, start = at::Tensor()](const at::Tensor& x, const MessageContext& context) mutable {
    std::vector<std::byte> space(codec->payload_size(meta_of(x)).bound);
    ByteWriter out(space);
    start = start.defined() ? start.clone() : start;  // a copy of the operator goes on by itself
    codec->warm_start()->write_from(start, x, context, out);
    ByteReader in(std::span<const std::byte>(space).first(out.used()));
    return codec->read(in, meta_of(x), context).tensor;
  };
}

/// The bare operator: sends C(x), the receiver sees C(x). No state but the start of a codec that has a warm
/// one, which is the sender's.
class Plain : public Link {
 public:
  using Link::Link;
  std::unique_ptr<Encoder> make_encoder() const override {
    if (codec().warm_start() != nullptr) return std::make_unique<WarmEncoder>(shared_codec());
    return std::make_unique<PlainEncoder>(shared_codec());
  }
  std::unique_ptr<Decoder> make_decoder() const override { return make_plain_decoder(shared_codec()); }
  MessageOperator reference(ApplyCodec apply) const override {
    if (codec().warm_start() != nullptr) return warm_operator(shared_codec());
    return [codec = shared_codec(), apply = std::move(apply)](
               const at::Tensor& x, const MessageContext& context) { return apply(*codec, x, context); };
  }
};

}  // namespace

std::unique_ptr<Decoder> make_plain_decoder(std::shared_ptr<const Codec> codec) {
  return std::make_unique<PlainDecoder>(std::move(codec));
}

std::unique_ptr<Link> make_plain(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  spec.finish();
  return std::make_unique<Plain>(id, std::move(codec));
}

}  // namespace strait
