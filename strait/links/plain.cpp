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

/// The bare operator, no state: sends C(x), the receiver sees C(x).
class Plain : public Link {
 public:
  using Link::Link;
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<PlainEncoder>(shared_codec());
  }
  std::unique_ptr<Decoder> make_decoder() const override { return make_plain_decoder(shared_codec()); }
  MessageOperator reference(ApplyCodec apply) const override {
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
